SELECT seq, id, type, queue, payload::text, max_retries, priority, run_at, deadline, fingerprint, key, attempts, runs,
    created_at, started_at, error::text, progress::text, history, expires_at, unique_name, on_duplicate, max_wait, tags,
    trace, status
FROM jobpipe.jobs WHERE seq > %(after)s AND status IN ('scheduled', 'waiting', 'queued') ORDER BY seq LIMIT %(limit)s
