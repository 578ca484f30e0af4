WITH found AS MATERIALIZED (
    SELECT seq, id, status FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE
), cancelled AS (
    UPDATE jobpipe.jobs SET status = 'cancelled', finished_at = jobpipe.now(%(now)s), is_parked = false
    FROM found WHERE jobs.seq = found.seq AND found.status IN ('scheduled', 'queued')
), told AS (
    UPDATE jobpipe.jobs SET is_cancelling = true
    FROM found WHERE jobs.seq = found.seq AND found.status = 'running'
)
SELECT id, status FROM found
