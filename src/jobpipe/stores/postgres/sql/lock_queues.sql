-- Whoever heeds a capacity to the letter has the queue for himself until the end of his transaction.
SELECT pg_advisory_xact_lock(hashtext('jobpipe.queue'), hashtext(queue))
FROM (SELECT DISTINCT unnest(%(queues)s::text[]) COLLATE "C" AS queue ORDER BY 1) AS wanted
