SELECT job, move, name, until, is_timed_out FROM suspensions
WHERE job IN (SELECT value FROM json_each(?)) ORDER BY name
