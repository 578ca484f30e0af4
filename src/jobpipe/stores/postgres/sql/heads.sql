-- The next in each lane after so many of it that were taken, or could not be parked; others that were passed over are by now.
SELECT -priority, run_at, seq, queue, type, key, is_suspect
FROM unnest(%(types)s::text[], %(queues)s::text[], %(taken)s::integer[]) AS lane (type, queue, taken)
CROSS JOIN LATERAL (
    SELECT priority, run_at, seq, key, is_suspect FROM jobpipe.jobs
    WHERE status = 'queued' AND NOT is_parked AND jobs.type = lane.type AND jobs.queue = lane.queue
    ORDER BY priority DESC, run_at, seq LIMIT %(most)s OFFSET lane.taken
) AS head
