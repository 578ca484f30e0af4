-- What bounds are held against: the time, the scheduled jobs, the lanes (if that is asked), and of these queues the
-- queued jobs and the lanes that there are.
SELECT
    jobpipe.now(%(now)s),
    (SELECT coalesce(sum(count), 0)::bigint FROM jobpipe.counted WHERE status = 'scheduled' OR status = 'waiting'),
    CASE WHEN %(names)s::bigint > 0 THEN (SELECT count(*) FROM (
        SELECT queue, type FROM jobpipe.tallies WHERE queue <> '' UNION SELECT queue, type FROM jobpipe.journal
    ) AS lanes) END,
    queue, type, count
FROM (SELECT 1) AS always LEFT JOIN (
    SELECT queue, type, sum(CASE WHEN status = 'queued' THEN count ELSE 0 END)::bigint AS count
    FROM jobpipe.counted WHERE queue = ANY(%(queues)s::text[]) GROUP BY queue, type
) AS own ON true
