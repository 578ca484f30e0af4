WITH RECURSIVE lanes AS (
    SELECT type, (
        SELECT queue FROM jobpipe.jobs
        WHERE status = 'queued' AND NOT is_parked AND jobs.type = wanted.type ORDER BY queue LIMIT 1
    ) AS queue
    FROM (SELECT DISTINCT unnest(%(types)s::text[]) AS type) AS wanted
    UNION ALL
    SELECT type, (
        SELECT queue FROM jobpipe.jobs
        WHERE status = 'queued' AND NOT is_parked AND jobs.type = lanes.type AND jobs.queue > lanes.queue
        ORDER BY queue LIMIT 1
    )
    FROM lanes WHERE queue IS NOT NULL
)
SELECT type, queue FROM lanes WHERE queue IS NOT NULL AND queue NOT IN (SELECT queue FROM jobpipe.paused)
