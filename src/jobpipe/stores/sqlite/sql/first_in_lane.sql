SELECT -priority, run_at, seq FROM jobs
WHERE status = 'queued' AND queue = ? AND type = ?
ORDER BY priority DESC, run_at, seq
LIMIT ?
