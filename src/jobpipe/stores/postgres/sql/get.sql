SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error::text, progress::text, expires_at, unique_name, tags, payload::text, result::text, history,
    on_duplicate, max_wait
FROM jobpipe.jobs WHERE id = %(id)s
