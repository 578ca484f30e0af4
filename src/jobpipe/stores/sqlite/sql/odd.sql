-- All columns of jobs that are about to be claimed, to see what another program may have changed, and the trace.
SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error, progress, expires_at, unique_name, tags, payload, result, history, on_duplicate, max_wait, trace
FROM jobs WHERE seq IN (SELECT value FROM json_each(?))
