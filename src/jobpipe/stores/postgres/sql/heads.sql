-- The next in each lane after so many of it that were taken, or could not be parked; others that were passed over are by now.
-- Then: may it not be claimed ahead? And its unique name, if another of that has begun.
SELECT -priority, run_at, seq, queue, type, key, is_suspect OR unique_name IS NOT NULL, CASE
    WHEN unique_name IS NOT NULL AND started_at IS NULL AND EXISTS (
        SELECT 1 FROM jobpipe.jobs AS begun
        WHERE begun.unique_name = head.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
    ) THEN unique_name
END
FROM unnest(%(types)s::text[], %(queues)s::text[], %(taken)s::integer[]) AS lane (type, queue, taken)
CROSS JOIN LATERAL (
    SELECT priority, run_at, seq, key, is_suspect, unique_name, started_at FROM jobpipe.jobs
    WHERE status = 'queued' AND NOT is_parked AND jobs.type = lane.type AND jobs.queue = lane.queue
    ORDER BY priority DESC, run_at, seq LIMIT %(most)s OFFSET lane.taken
) AS head
