SELECT jobs.id, name, began_at, ended_at, steps.result
FROM jobpipe.steps JOIN jobpipe.jobs ON seq = job WHERE jobs.id = ANY(%(ids)s::text[]) ORDER BY number
