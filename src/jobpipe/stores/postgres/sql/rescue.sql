WITH lost AS MATERIALIZED (
    SELECT seq, worker, lease_until, status AS was, status = 'running' AS has_begun FROM jobpipe.jobs
    WHERE lease_until <= jobpipe.now(%(now)s)
    ORDER BY lease_until, seq LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), rescued AS (
    UPDATE jobpipe.jobs SET
        status = CASE
            WHEN NOT has_begun THEN status
            WHEN is_cancelling THEN 'cancelled'
            WHEN attempts > max_retries THEN 'failed'
            ELSE 'queued'
        END,
        finished_at = CASE WHEN has_begun AND (is_cancelling OR attempts > max_retries) THEN now ELSE finished_at END,
        error = CASE WHEN has_begun THEN %(error)s::json ELSE error END,
        history = CASE WHEN NOT has_begun THEN history ELSE (
            history || json_build_array(runs, started_at, now, jobs.worker, %(error)s::json)::text
        )[greatest(cardinality(history) + 2 - %(kept)s, 1):] END,
        worker = NULL, token = NULL, lease_until = NULL, gate = NULL, is_cancelling = false, is_parked = false,
        is_suspect = is_suspect OR was = 'queued'
    FROM lost, jobpipe.now(%(now)s) AS now
    WHERE jobs.seq = lost.seq
    RETURNING lost.lease_until, lost.seq, id, lost.worker, status, was, type, attempts
)
SELECT id, worker, status, type, attempts FROM rescued
-- Others were cancelled by a program that knows of none that are claimed ahead: only their lease and place are left.
WHERE was IN ('queued', 'running')
ORDER BY lease_until, seq
