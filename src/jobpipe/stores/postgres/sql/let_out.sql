-- From each queue as many as might enter, since the best of all may be in any. Why an array: so the plan goes through it,
-- and never through all jobs that are parked, however empty the table was when it was made; the CASE keeps it from the
-- index of those. Why skip locked: who has one may wait for the gates in turn.
UPDATE jobpipe.jobs SET is_parked = false
WHERE seq = ANY(ARRAY(
    SELECT seq FROM jobpipe.jobs
    WHERE CASE WHEN status = 'queued' AND lease_until IS NULL AND NOT is_behind THEN is_parked END AND seq = ANY(ARRAY(
        SELECT free.seq
        FROM unnest(%(types)s::text[], %(keys)s::text[], %(rooms)s::integer[]) AS told (type, key, room)
        CROSS JOIN LATERAL (
            WITH RECURSIVE queues AS (
                SELECT min(queue) AS queue FROM jobpipe.jobs
                WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind
                    AND jobs.type = told.type AND jobs.key = told.key
                UNION ALL
                SELECT (
                    SELECT min(queue) FROM jobpipe.jobs
                    WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind
                        AND jobs.type = told.type AND jobs.key = told.key AND jobs.queue > queues.queue
                )
                FROM queues WHERE queue IS NOT NULL
            )
            SELECT best.seq FROM queues CROSS JOIN LATERAL (
                SELECT seq FROM jobpipe.jobs
                WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind
                    AND jobs.type = told.type AND jobs.key = told.key AND jobs.queue = queues.queue
                ORDER BY priority DESC, run_at, seq LIMIT told.room
            ) AS best
            WHERE queues.queue NOT IN (SELECT queue FROM jobpipe.paused)
        ) AS free
    ))
    FOR UPDATE SKIP LOCKED
))
