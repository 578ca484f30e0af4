SELECT id, type, queue, started_at IS NOT NULL FROM jobs WHERE unique_name = ? AND finished_at IS NULL
