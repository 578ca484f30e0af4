INSERT INTO gates (type, key, opens_at) VALUES (:type, :key, :opens_at)
ON CONFLICT DO UPDATE SET opens_at = min(coalesce(opens_at, excluded.opens_at), excluded.opens_at)
