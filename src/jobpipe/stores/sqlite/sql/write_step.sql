INSERT INTO steps (job, name, began_at, ended_at, result)
SELECT seq, ?, ?, ?, ? FROM jobs
WHERE id = ? AND token = ? AND lease_until IS NOT NULL
ON CONFLICT DO NOTHING
