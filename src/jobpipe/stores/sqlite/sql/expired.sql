SELECT seq, id, worker FROM jobs WHERE status = 'running' AND lease_until <= ? ORDER BY lease_until, seq LIMIT ?
