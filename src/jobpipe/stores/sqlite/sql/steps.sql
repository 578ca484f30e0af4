SELECT job, name, began_at, ended_at, result FROM steps
WHERE job IN (SELECT value FROM json_each(?)) ORDER BY number
