-- As write_steps.sql, of one step. Why apart: it takes half the time, and most steps come alone.
INSERT INTO jobpipe.steps (job, name, began_at, ended_at, result)
SELECT seq, %(name)s, %(began_at)s::float8, %(ended_at)s::float8, %(result)s FROM jobpipe.jobs
WHERE id = %(id)s AND token = %(token)s AND CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
FOR SHARE
ON CONFLICT DO NOTHING
