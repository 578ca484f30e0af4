INSERT INTO jobpipe.gates (type, key, next_at)
SELECT type, key, next_at FROM unnest(%(types)s::text[], %(keys)s::text[], %(next_at)s::float8[])
    AS told (type, key, next_at)
ORDER BY type, key
ON CONFLICT (type, key) DO UPDATE SET next_at = excluded.next_at
