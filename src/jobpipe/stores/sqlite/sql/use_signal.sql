UPDATE signals SET is_used = 1 WHERE job = ? AND name = ? RETURNING payload
