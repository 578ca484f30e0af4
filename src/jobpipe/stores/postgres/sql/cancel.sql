WITH found AS MATERIALIZED (
    SELECT seq, id, status, lease_until FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE
), cancelled AS (
    UPDATE jobpipe.jobs SET
        status = 'cancelled', finished_at = jobpipe.now(%(now)s), is_parked = false, gate = NULL, lease_until = NULL,
        -- Why kept without a lease: it is that of the last settlement.
        token = CASE WHEN found.lease_until IS NULL THEN token END
    FROM found WHERE jobs.seq = found.seq AND found.status IN ('scheduled', 'waiting', 'queued')
), told AS (
    UPDATE jobpipe.jobs SET is_cancelling = true
    FROM found WHERE jobs.seq = found.seq AND found.status = 'running'
)
SELECT id, status FROM found
