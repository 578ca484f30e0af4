INSERT INTO steps (job, name, began_at, ended_at, result)
SELECT seq, :name, :began_at, :ended_at, :result FROM jobs
WHERE id = :id AND token = :token AND lease_until IS NOT NULL
ON CONFLICT DO NOTHING
