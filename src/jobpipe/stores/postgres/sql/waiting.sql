SELECT queue, sum(count)::bigint FROM jobpipe.counted
WHERE queue = ANY(%(queues)s::text[]) AND status IN ('scheduled', 'queued')
GROUP BY queue
