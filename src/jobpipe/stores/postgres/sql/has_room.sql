-- A part of insert.sql, so that only inserts with bounds pay for it: nothing is written if a bound (none where it is 0) has
-- no room for all. They are %(capacity)s on the queued jobs of a queue, %(scheduled)s on the scheduled ones of the store,
-- %(names)s on the lanes that have jobs.
(%(capacity)s::bigint = 0 OR NOT EXISTS (
    SELECT 1 FROM (SELECT queue, count(*) AS needed FROM timed WHERE due_at <= now GROUP BY queue) AS more
    WHERE needed + (
        SELECT coalesce(sum(count), 0) FROM jobpipe.counted
        WHERE counted.queue = more.queue AND counted.status = 'queued'
    ) > %(capacity)s::bigint
)) AND (%(scheduled)s::bigint = 0 OR NOT EXISTS (
    SELECT 1 FROM (SELECT count(*) AS needed FROM timed WHERE due_at > now) AS more
    WHERE needed > 0 AND needed + (
        SELECT coalesce(sum(count), 0) FROM jobpipe.counted WHERE counted.status = 'scheduled' OR counted.status = 'waiting'
    ) > %(scheduled)s::bigint
)) AND CASE -- Why: only where a lane is new are all of them counted.
    WHEN %(names)s::bigint = 0 THEN true
    WHEN NOT EXISTS (
        SELECT 1 FROM told WHERE NOT EXISTS (
            SELECT 1 FROM jobpipe.tallies WHERE tallies.queue = told.queue AND tallies.type = told.type
        )
    ) THEN true
    ELSE (SELECT count(*) FROM (
        SELECT queue, type FROM told
        UNION SELECT queue, type FROM jobpipe.tallies WHERE queue <> ''
        UNION SELECT queue, type FROM jobpipe.journal
    ) AS lanes) <= %(names)s::bigint
END
