-- Rows are numbered in the order in which they were told, and written by unique name and id: so two that insert the same jobs in
-- another order wait for each other at the first, and never in a circle. Nothing is written if a bound (none where
-- it is 0) has no room for all: %(capacity)s on the queued jobs of a queue, %(scheduled)s on the scheduled ones of the
-- store, %(names)s on the lanes that have jobs. What few jobs have is told as one JSON array each, or NULL.
WITH told AS MATERIALIZED (
    SELECT nextval('jobpipe.jobs_seq') AS seq, each.*
    FROM unnest(
        %(ids)s::text[], %(types)s::text[], %(queues)s::text[], %(payloads)s::text[], %(max_retries)s::integer[],
        %(priorities)s::integer[], %(delays)s::float8[], %(run_ats)s::float8[], %(deadlines)s::float8[],
        %(fingerprints)s::text[], %(keys)s::text[], %(more)s::json[]
    ) AS each (
        id, type, queue, payload, max_retries, priority, delay, run_at, deadline, fingerprint, key, more
    )
), timed AS MATERIALIZED (
    SELECT told.*, now, least(coalesce(told.run_at, now + delay), now + (more ->> 4)::float8) AS due_at
    FROM told, jobpipe.now(%(now)s) AS now
)
INSERT INTO jobpipe.jobs (
    seq, id, type, queue, status, max_retries, priority, run_at, deadline, created_at, fingerprint, key, payload,
    expires_at, unique_name, on_duplicate, max_wait, tags
)
SELECT
    seq, id, type, queue, CASE WHEN due_at <= now THEN 'queued' ELSE 'scheduled' END, max_retries, priority, due_at,
    deadline, now, fingerprint, key, payload::json,
    coalesce((more ->> 0)::float8, now + (more ->> 1)::float8), more ->> 2, more ->> 3, (more ->> 4)::float8,
    CASE WHEN more IS NOT NULL AND more ->> 5 <> '[]' THEN ARRAY(SELECT json_array_elements_text(more -> 5)) END
FROM timed
WHERE (%(capacity)s::bigint = 0 OR NOT EXISTS (
    SELECT 1 FROM (SELECT queue, count(*) AS needed FROM timed WHERE due_at <= now GROUP BY queue) AS more
    WHERE needed + (
        SELECT coalesce(sum(count), 0) FROM jobpipe.counted
        WHERE counted.queue = more.queue AND counted.status = 'queued'
    ) > %(capacity)s::bigint
)) AND (%(scheduled)s::bigint = 0 OR NOT EXISTS (
    SELECT 1 FROM (SELECT count(*) AS needed FROM timed WHERE due_at > now) AS more
    WHERE needed > 0 AND needed + (
        SELECT coalesce(sum(count), 0) FROM jobpipe.counted WHERE counted.status = 'scheduled'
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
ORDER BY more ->> 2 NULLS FIRST, id
on_conflict
RETURNING id, status
