DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM jobs WHERE finished_at < ? ORDER BY finished_at LIMIT ?
)
