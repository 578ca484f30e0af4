-- Of jobs that were claimed ahead, told as in begin.sql, those that had expired when they were to begin.
UPDATE jobs SET
    status = 'expired', finished_at = :now, gate = NULL, lease_until = NULL, is_parked = 0, token = NULL
FROM (
    SELECT value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS started_at FROM json_each(:told)
) AS told
WHERE jobs.id = told.id AND jobs.token = told.token AND jobs.status = 'queued' AND lease_until IS NOT NULL
    AND jobs.expires_at <= told.started_at AND jobs.started_at IS NULL AND jobs.runs = 0
