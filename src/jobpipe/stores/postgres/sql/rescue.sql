WITH lost AS MATERIALIZED (
    SELECT seq, worker, lease_until FROM jobpipe.jobs
    WHERE status = 'running' AND lease_until <= jobpipe.now(%(now)s)
    ORDER BY lease_until, seq LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
), rescued AS (
    UPDATE jobpipe.jobs SET
        status = CASE WHEN is_cancelling THEN 'cancelled' WHEN attempts > max_retries THEN 'failed' ELSE 'queued' END,
        finished_at = CASE WHEN is_cancelling OR attempts > max_retries THEN now END,
        error = %(error)s::json,
        history = (
            history || json_build_array(runs, started_at, now, jobs.worker, %(error)s::json)::text
        )[greatest(cardinality(history) + 2 - %(kept)s, 1):],
        worker = NULL, token = NULL, lease_until = NULL, gate = NULL, is_cancelling = false
    FROM lost, jobpipe.now(%(now)s) AS now
    WHERE jobs.seq = lost.seq
    RETURNING lost.lease_until, lost.seq, id, lost.worker, status
)
SELECT id, worker, status FROM rescued ORDER BY lease_until, seq
