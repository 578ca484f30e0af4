-- The value is a JSON array of arrays: id, token and when it began.
UPDATE jobs SET
    status = 'running', attempts = attempts + 1, runs = runs + 1, started_at = told.started_at, progress = NULL,
    is_parked = 0
FROM (
    SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS started_at FROM json_each(?)
) AS told
-- A job that is to run again keeps the token of its last run, but no lease.
WHERE jobs.id = told.id AND jobs.token = told.token AND jobs.status = 'queued' AND lease_until IS NOT NULL
