-- Rows are numbered in the order in which they were told, and written by unique name and id: so two that insert the same jobs in
-- another order wait for each other at the first, and never in a circle. What few jobs have is told as one JSON array each,
-- or NULL. Where there are bounds, the condition is that of has_room.sql.
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
    expires_at, unique_name, on_duplicate, max_wait, tags, trace
)
SELECT
    seq, id, type, queue, CASE WHEN due_at <= now THEN 'queued' ELSE 'scheduled' END, max_retries, priority, due_at,
    deadline, now, fingerprint, key, payload::json,
    coalesce((more ->> 0)::float8, now + (more ->> 1)::float8), more ->> 2, more ->> 3, (more ->> 4)::float8,
    CASE WHEN more IS NOT NULL AND more ->> 5 <> '[]' THEN ARRAY(SELECT json_array_elements_text(more -> 5)) END,
    more ->> 6
FROM timed
WHERE there_is_room
ORDER BY by_name id
on_conflict
RETURNING id, status
