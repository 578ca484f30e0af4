UPDATE jobs SET
    status = 'running', attempts = attempts + 1, runs = runs + 1, started_at = :now, progress = NULL,
    worker = :worker, token = :token, lease_until = :until
WHERE seq IN (SELECT value FROM json_each(:seqs))
