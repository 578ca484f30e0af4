-- Numbered as told, written by id, as in insert.sql. A history is told as one JSON array of its entries.
WITH told AS MATERIALIZED (
    SELECT nextval('jobpipe.jobs_seq') AS seq, each.*
    FROM unnest(
        %(ids)s::text[], %(types)s::text[], %(queues)s::text[], %(payloads)s::text[], %(max_retries)s::integer[],
        %(priorities)s::integer[], %(run_ats)s::float8[], %(deadlines)s::float8[], %(fingerprints)s::text[],
        %(keys)s::text[], %(attempts)s::integer[], %(runs)s::integer[], %(created_at)s::float8[],
        %(started_at)s::float8[], %(errors)s::text[], %(progress)s::text[], %(histories)s::text[], %(more)s::json[],
        %(are_waiting)s::boolean[]
    ) AS each (
        id, type, queue, payload, max_retries, priority, run_at, deadline, fingerprint, key, attempts, runs,
        created_at, started_at, error, progress, history, more, is_waiting
    )
)
INSERT INTO jobpipe.jobs (
    seq, id, type, queue, status, max_retries, priority, run_at, deadline, created_at, fingerprint, key, payload,
    attempts, runs, started_at, error, progress, history, expires_at, unique_name, on_duplicate, max_wait, tags, trace
)
SELECT
    seq, id, type, queue, CASE
        WHEN run_at <= jobpipe.now(%(now)s) THEN 'queued'
        WHEN is_waiting THEN 'waiting'
        ELSE 'scheduled'
    END,
    max_retries, priority, run_at, deadline, created_at, fingerprint, key, payload::json, attempts, runs, started_at, error::json,
    progress::json, ARRAY(SELECT value::text FROM json_array_elements(history::json)),
    (more ->> 0)::float8, more ->> 2, more ->> 3, (more ->> 4)::float8,
    CASE WHEN more IS NOT NULL AND more ->> 5 <> '[]' THEN ARRAY(SELECT json_array_elements_text(more -> 5)) END,
    more ->> 6
FROM told
ORDER BY id
ON CONFLICT (id) DO NOTHING
RETURNING id
