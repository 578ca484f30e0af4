INSERT INTO jobpipe.gates (type, key, opens_at)
SELECT type, key, opens_at FROM unnest(%(types)s::text[], %(keys)s::text[], %(opens_at)s::float8[])
    AS told (type, key, opens_at)
ORDER BY type, key
ON CONFLICT (type, key) DO UPDATE SET opens_at = least(gates.opens_at, excluded.opens_at)
