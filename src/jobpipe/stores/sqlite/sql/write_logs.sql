-- ? is a JSON array of arrays: id, token, start, cut, count, size, lines.
INSERT INTO logs (job, token, start, attempt, cut, count, size, lines)
SELECT seq, value ->> 1, value ->> 2, runs + (status = 'queued'), value ->> 3, value ->> 4, value ->> 5, value ->> 6
FROM json_each(?) CROSS JOIN jobs ON jobs.id = value ->> 0
WHERE token = value ->> 1 AND lease_until IS NOT NULL
ON CONFLICT DO NOTHING
RETURNING job
