-- Those that were settled. Why apart: most jobs are none, and to write that costs.
UPDATE jobs INDEXED BY jobs_suspect SET is_suspect = 0
WHERE is_suspect = 1 AND (id, token) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
