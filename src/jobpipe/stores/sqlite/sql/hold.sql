-- :held is a JSON array of seq, the key of the gate, and the seconds until the start.
UPDATE jobs SET gate = told.gate, started_at = :now + told.starts_in
FROM (SELECT value ->> 0 AS seq, value ->> 1 AS gate, value ->> 2 AS starts_in FROM json_each(:held)) AS told
WHERE jobs.seq = told.seq
