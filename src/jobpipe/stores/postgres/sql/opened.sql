-- The gates of those that were let out open next for what is still parked before them. Where all of that is in queues
-- that are paused, it is enough to look again in a while.
UPDATE jobpipe.gates SET opens_at = CASE
    WHEN EXISTS (
        SELECT 1 FROM jobpipe.jobs
        WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind AND jobs.type = told.type AND jobs.key = told.key
            AND queue NOT IN (SELECT queue FROM jobpipe.paused)
    ) THEN told.opens_at
    WHEN EXISTS (
        SELECT 1 FROM jobpipe.jobs
        WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind AND jobs.type = told.type AND jobs.key = told.key
    ) THEN %(insured_at)s
END
FROM unnest(%(types)s::text[], %(keys)s::text[], %(opens_at)s::float8[]) AS told (type, key, opens_at)
WHERE gates.type = told.type AND gates.key = told.key
