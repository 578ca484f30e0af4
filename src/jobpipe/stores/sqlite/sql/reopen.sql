UPDATE gates SET opens_at = 0 WHERE type = ? AND key = ? AND opens_at IS NOT NULL
