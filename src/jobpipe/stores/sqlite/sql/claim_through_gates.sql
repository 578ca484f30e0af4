-- :jobs is a JSON array of arrays: seq, the key of the gate that it passes, if any, and the seconds until the start.
UPDATE jobs SET
    status = 'running', attempts = attempts + 1, runs = runs + 1, progress = NULL,
    started_at = :now + told.starts_in, gate = told.gate,
    worker = :worker, token = :token, lease_until = :until
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS gate, value ->> 2 AS starts_in FROM json_each(:jobs)) AS told
WHERE jobs.seq = told.seq
