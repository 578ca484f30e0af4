-- Why twice: those that are parked are in an index of their own.
SELECT count(*) FROM (SELECT seq, queue, priority, run_at, status FROM jobpipe.jobs WHERE id = %(id)s) AS this
CROSS JOIN LATERAL (
    SELECT seq, queue, priority, run_at FROM jobpipe.jobs WHERE status = 'queued' AND NOT is_parked
    UNION ALL
    SELECT seq, queue, priority, run_at FROM jobpipe.jobs WHERE status = 'queued' AND is_parked AND lease_until IS NULL
) AS other
WHERE this.status = 'queued' AND other.queue = this.queue
    AND (-other.priority, other.run_at, other.seq) < (-this.priority, this.run_at, this.seq)
