-- Before it is settled, and only if it will be: what is told a second time cools nothing.
INSERT INTO cooling (type, until)
SELECT type, :until FROM jobs WHERE id = :id AND token = :token AND lease_until IS NOT NULL
ON CONFLICT DO UPDATE SET until = max(until, excluded.until)
