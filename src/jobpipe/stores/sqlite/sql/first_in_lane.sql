SELECT -priority, run_at + 0.0, seq, queue, type, key FROM jobs
WHERE status = 'queued' AND is_parked = 0 AND queue = ? AND type = ?
ORDER BY priority DESC, run_at, seq
LIMIT ? OFFSET ?
