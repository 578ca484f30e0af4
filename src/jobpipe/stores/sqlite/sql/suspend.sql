-- Before it is settled, and only if it will be. One of that name that is recorded already counts.
INSERT INTO suspensions (job, move, name, until)
SELECT seq, :move, :name, :now + :delay FROM jobs
WHERE id = :id AND token = :token AND lease_until IS NOT NULL AND is_cancelling = 0
ON CONFLICT DO UPDATE SET until = until
RETURNING job, until
