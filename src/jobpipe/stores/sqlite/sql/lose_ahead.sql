UPDATE jobs SET worker = NULL, token = NULL, gate = NULL, lease_until = NULL, is_parked = 0, is_suspect = 1
WHERE seq = ?
