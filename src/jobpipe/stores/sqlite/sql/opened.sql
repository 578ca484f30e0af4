-- The gate of those that were let out opens next for what is still parked before it.
UPDATE gates SET opens_at = CASE
    WHEN EXISTS (SELECT 1 FROM jobs WHERE is_parked = 1 AND type = :type AND key = :key) THEN :opens_at
END
WHERE type = :type AND key = :key
