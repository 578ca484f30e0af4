-- Why skip locked: what another is about to queue needs nobody else, and nobody waits.
UPDATE jobpipe.jobs SET status = 'queued'
FROM (
    SELECT seq FROM jobpipe.jobs
    WHERE status = 'scheduled' AND run_at <= jobpipe.now(%(now)s)
    ORDER BY run_at LIMIT 10000
    FOR UPDATE SKIP LOCKED
) AS due
WHERE jobs.seq = due.seq
