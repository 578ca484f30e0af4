SELECT type, substr(error, 1, :head), finished_at, id FROM jobs INDEXED BY jobs_failed_at
WHERE status = 'failed' AND finished_at IS NOT NULL ORDER BY finished_at DESC, seq DESC LIMIT :limit
