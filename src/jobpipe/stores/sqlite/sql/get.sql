SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error, progress, payload, result, history
FROM jobs WHERE id = ?
