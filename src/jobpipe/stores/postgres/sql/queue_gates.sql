-- Whoever has a lease on a job of the queue holds a place: also one that was claimed ahead.
SELECT told.queue, coalesce(gates.next_at, 0), (
    SELECT count(*) FROM jobpipe.jobs WHERE lease_until IS NOT NULL AND jobs.queue = told.queue
), ARRAY(
    SELECT id FROM jobpipe.jobs WHERE lease_until IS NOT NULL AND jobs.queue = told.queue
    ORDER BY started_at, seq LIMIT 20
)
FROM unnest(%(queues)s::text[]) WITH ORDINALITY AS told (queue, place)
LEFT JOIN jobpipe.gates ON gates.type = '' AND gates.key = told.queue
ORDER BY told.place
