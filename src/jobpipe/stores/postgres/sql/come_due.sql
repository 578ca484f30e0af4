-- What expired before it began ends, and what is due, or has waited until now, is queued: one statement, as every verb comes with it. What is
-- leased may have begun: its worker, or the end of its lease, will tell.
-- Why skip locked: what another is about to change needs nobody else, and nobody waits.
UPDATE jobpipe.jobs SET
    status = due.status, is_parked = is_parked AND due.status = 'queued',
    finished_at = CASE WHEN due.status = 'expired' THEN jobpipe.now(%(now)s) END
FROM (
    SELECT seq, 'expired' AS status FROM (
        SELECT seq FROM jobpipe.jobs
        WHERE expires_at <= jobpipe.now(%(now)s) AND started_at IS NULL AND finished_at IS NULL AND runs = 0
            AND lease_until IS NULL
        ORDER BY expires_at LIMIT 10000
        FOR UPDATE SKIP LOCKED
    ) AS late
    UNION ALL
    SELECT seq, 'queued' FROM (
        SELECT seq FROM jobpipe.jobs
        WHERE (status = 'scheduled' OR status = 'waiting') AND run_at <= jobpipe.now(%(now)s)
            AND (expires_at IS NULL OR expires_at > jobpipe.now(%(now)s) OR started_at IS NOT NULL OR runs > 0)
        ORDER BY run_at LIMIT 10000
        FOR UPDATE SKIP LOCKED
    ) AS ready
) AS due
WHERE jobs.seq = due.seq
