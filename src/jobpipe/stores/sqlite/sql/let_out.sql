UPDATE jobs SET is_parked = 0 WHERE seq IN (
    SELECT seq FROM jobs WHERE is_parked = 1 AND type = :type AND key = :key AND queue = :queue
    ORDER BY priority DESC, run_at, seq LIMIT :most
)
