-- Unless all that is parked before it is in queues that are paused.
UPDATE jobpipe.gates SET opens_at = 0
FROM unnest(%(types)s::text[], %(keys)s::text[]) AS told (type, key)
WHERE gates.type = told.type AND gates.key = told.key AND opens_at IS NOT NULL AND EXISTS (
    SELECT 1 FROM jobpipe.jobs
    WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind AND jobs.type = told.type AND jobs.key = told.key
        AND queue NOT IN (SELECT queue FROM jobpipe.paused)
)
