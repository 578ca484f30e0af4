-- :jobs is a JSON array of arrays: seq, and for those that pass a gate, its key and the seconds until the start.
UPDATE jobs SET
    status = 'running', attempts = attempts + 1, runs = runs + 1, progress = NULL,
    started_at = :now + coalesce(told.starts_in, 0), gate = told.gate,
    worker = :worker, token = :token, lease_until = :until
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS gate, value ->> 2 AS starts_in FROM json_each(:jobs)) AS told
WHERE jobs.seq = told.seq
