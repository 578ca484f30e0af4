UPDATE jobs SET is_parked = 1 WHERE seq IN (SELECT value FROM json_each(?))
