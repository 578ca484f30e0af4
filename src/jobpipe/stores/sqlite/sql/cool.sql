-- Only what was settled by this very lease.
INSERT INTO cooling (type, until)
SELECT type, :until FROM jobs WHERE id = :id AND token = :token AND status <> 'running'
ON CONFLICT DO UPDATE SET until = max(until, excluded.until)
