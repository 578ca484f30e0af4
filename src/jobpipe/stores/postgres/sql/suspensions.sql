SELECT jobs.id, move, name, until, is_timed_out
FROM jobpipe.suspensions JOIN jobpipe.jobs ON seq = job WHERE jobs.id = ANY(%(ids)s::text[]) ORDER BY name
