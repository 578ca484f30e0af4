INSERT INTO jobs (id, type, queue, status, max_retries, priority, run_at, deadline, created_at, fingerprint, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING
