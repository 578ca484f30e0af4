SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error::text, progress::text, payload::text, result::text, history
FROM jobpipe.jobs WHERE id = %(id)s
