SELECT seq, id, type, queue, payload, max_retries, priority, run_at, deadline, fingerprint, key, attempts, runs,
    created_at, started_at, error, progress, history, expires_at, unique_name, on_duplicate, max_wait, tags, trace, status
FROM jobs WHERE seq > ? AND status IN ('scheduled', 'waiting', 'queued') ORDER BY seq LIMIT ?
