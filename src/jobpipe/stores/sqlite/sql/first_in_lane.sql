-- The last column: may it not be claimed ahead?
SELECT -priority, run_at + 0.0, seq, queue, type, key, is_suspect = 1 OR unique_name IS NOT NULL FROM jobs
WHERE status = 'queued' AND is_parked = 0 AND queue = ? AND type = ?
ORDER BY priority DESC, run_at, seq
LIMIT ? OFFSET ?
