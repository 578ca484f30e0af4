-- The job that waits takes the content of another, unless it has begun meanwhile. What was claimed ahead loses its lease,
-- as in cancel.sql. It is not behind another any more: the next claim looks.
WITH old AS MATERIALIZED (
    SELECT seq, tags, now, least(
        coalesce(%(run_at)s::float8, now + %(delay)s::float8), created_at + %(max_wait)s::float8
    ) AS due_at
    FROM jobpipe.jobs, jobpipe.now(%(now)s) AS now
    WHERE id = %(id)s AND finished_at IS NULL AND started_at IS NULL
    FOR UPDATE OF jobs
), untagged AS (
    DELETE FROM jobpipe.tagged USING old
    WHERE job = old.seq AND tag = ANY(old.tags) AND (tag = ANY(%(tags)s::text[])) IS NOT true
), retagged AS (
    INSERT INTO jobpipe.tagged (tag, job) SELECT unnest(%(tags)s::text[]), seq FROM old ON CONFLICT DO NOTHING
)
UPDATE jobpipe.jobs SET
    status = CASE WHEN due_at <= now THEN 'queued' ELSE 'scheduled' END,
    run_at = due_at, payload = %(payload)s::json, max_retries = %(max_retries)s, priority = %(priority)s,
    deadline = %(deadline)s::float8, key = %(key)s::text, on_duplicate = %(on_duplicate)s::text,
    max_wait = %(max_wait)s::float8, tags = %(tags)s::text[], trace = %(trace)s::text,
    expires_at = coalesce(%(expires_at)s::float8, now + %(expires_in)s::float8),
    token = CASE WHEN lease_until IS NULL THEN token END, lease_until = NULL, gate = NULL,
    is_parked = false, is_behind = false
FROM old WHERE jobs.seq = old.seq
RETURNING id, status
