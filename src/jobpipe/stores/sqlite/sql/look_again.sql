UPDATE gates SET opens_at = 0 WHERE opens_at IS NOT NULL
