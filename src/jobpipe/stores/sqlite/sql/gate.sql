SELECT
    coalesce((SELECT next_at FROM gates WHERE type = :type AND key = :key), 0),
    (SELECT count(*) FROM jobs WHERE type = :type AND gate = :key)
