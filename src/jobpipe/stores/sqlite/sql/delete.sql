DELETE FROM jobs WHERE id = ? AND status NOT IN ('scheduled', 'waiting', 'queued', 'running')
