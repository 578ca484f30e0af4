-- Why with an offset: else the plan might go through all jobs of a status, instead of those of the tag.
SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error::text, progress::text, expires_at, unique_name, tags
FROM jobpipe.tagged CROSS JOIN LATERAL (SELECT * FROM jobpipe.jobs WHERE jobs.seq = tagged.job OFFSET 0) AS jobs
WHERE tagged.tag = %(tag)s AND tagged.job < %(before)s filters ORDER BY tagged.job DESC LIMIT %(limit)s
