-- :jobs is a JSON array of arrays: seq, the key of the gate that it passes, if any, the seconds until the start, and
-- whether it begins now.
UPDATE jobs SET
    status = CASE WHEN told.begins THEN 'running' ELSE status END,
    attempts = attempts + told.begins,
    runs = runs + told.begins,
    started_at = CASE WHEN told.begins THEN :now + told.starts_in ELSE started_at END,
    progress = CASE WHEN NOT told.begins THEN progress END,
    gate = told.gate,
    is_parked = CASE WHEN told.begins THEN 0 ELSE 2 END,
    worker = :worker, token = :token, lease_until = :until
FROM (
    SELECT value ->> 0 AS seq, value ->> 1 AS gate, value ->> 2 AS starts_in, value ->> 3 AS begins
    FROM json_each(:jobs)
) AS told
WHERE jobs.seq = told.seq
