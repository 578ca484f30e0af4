UPDATE jobs SET status = 'queued' WHERE status = 'scheduled' AND run_at <= ?
