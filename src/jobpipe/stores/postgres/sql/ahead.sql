-- Why twice: those that are parked are in an index of their own.
-- Not counted is what waits for another of its unique name, which has begun.
SELECT count(*) FROM (SELECT seq, queue, priority, run_at, status FROM jobpipe.jobs WHERE id = %(id)s) AS this
CROSS JOIN LATERAL (
    SELECT seq, queue, priority, run_at, unique_name, started_at FROM jobpipe.jobs
    WHERE status = 'queued' AND NOT is_parked
    UNION ALL
    SELECT seq, queue, priority, run_at, unique_name, started_at FROM jobpipe.jobs
    WHERE status = 'queued' AND is_parked AND lease_until IS NULL AND NOT is_behind
) AS other
WHERE this.status = 'queued' AND other.queue = this.queue
    AND (-other.priority, other.run_at, other.seq) < (-this.priority, this.run_at, this.seq)
    AND (other.unique_name IS NULL OR other.started_at IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM jobpipe.jobs AS begun
        WHERE begun.unique_name = other.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
    ))
