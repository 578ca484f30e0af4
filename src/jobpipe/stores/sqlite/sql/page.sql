SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error, progress, expires_at, unique_name, tags
FROM {source} WHERE {number} < :before {filters} ORDER BY {number} DESC LIMIT :limit
