SELECT count(*) FROM jobs AS other, (SELECT seq, queue, priority, run_at, status FROM jobs WHERE id = ?) AS this
WHERE this.status = 'queued' AND other.status = 'queued' AND other.queue = this.queue
    AND (-other.priority, other.run_at, other.seq) < (-this.priority, this.run_at, this.seq)
