-- Which of these jobs, a JSON array, may have too much.
SELECT job FROM json_each(?) CROSS JOIN logs ON job = value GROUP BY job HAVING sum(size) > ?
