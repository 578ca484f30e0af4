-- Two counts, since the ready and the parked are in indexes of their own.
WITH this AS (SELECT seq, queue, priority, run_at FROM jobs WHERE id = ? AND status = 'queued')
SELECT
    (
        SELECT count(*) FROM jobs AS other, this
        WHERE other.status = 'queued' AND other.is_parked = 0 AND other.queue = this.queue
            AND (-other.priority, other.run_at, other.seq) < (-this.priority, this.run_at, this.seq)
    ) + (
        SELECT count(*) FROM jobs AS other, this
        WHERE other.is_parked = 1 AND other.queue = this.queue
            AND (-other.priority, other.run_at, other.seq) < (-this.priority, this.run_at, this.seq)
    )
