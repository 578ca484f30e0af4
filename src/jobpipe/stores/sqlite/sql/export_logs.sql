SELECT job, attempt, cut, count, size, lines FROM logs
WHERE job IN (SELECT value FROM json_each(?)) ORDER BY job, number
