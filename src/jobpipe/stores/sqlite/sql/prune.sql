DELETE FROM jobs WHERE seq IN (
    SELECT seq FROM (
        SELECT seq FROM jobs WHERE finished_at < :before AND status <> 'failed' ORDER BY finished_at LIMIT :limit
    )
    UNION ALL
    SELECT seq FROM (
        SELECT seq FROM jobs WHERE finished_at < :failed_before AND status = 'failed' ORDER BY finished_at LIMIT :limit
    )
    LIMIT :limit
)
