SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error::text, progress::text, expires_at, unique_name, tags
FROM jobpipe.jobs WHERE seq < %(before)s filters ORDER BY seq DESC LIMIT %(limit)s
