SELECT seq, id, worker, status, type, attempts FROM (
    SELECT seq, id, worker, status, type, attempts, lease_until FROM jobs WHERE status = 'running' AND lease_until <= :now
    UNION ALL
    SELECT seq, id, worker, status, type, attempts, lease_until FROM jobs WHERE status = 'queued' AND lease_until <= :now
)
ORDER BY lease_until, seq LIMIT :limit
