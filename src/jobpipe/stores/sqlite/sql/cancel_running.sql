UPDATE jobs SET is_cancelling = 1 WHERE id = :id
