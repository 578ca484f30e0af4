SELECT DISTINCT unique_name FROM jobs
WHERE id IN (SELECT value FROM json_each(?)) AND unique_name IS NOT NULL
