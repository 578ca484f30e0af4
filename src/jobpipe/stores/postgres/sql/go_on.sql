-- A job that waits for a signal that is there.
UPDATE jobpipe.jobs SET status = 'queued', run_at = jobpipe.now(%(now)s)
WHERE seq = %(job)s AND status = 'waiting' AND EXISTS (
    SELECT 1 FROM jobpipe.suspensions JOIN jobpipe.signals USING (job, name)
    WHERE suspensions.job = %(job)s AND move = 'wait' AND NOT is_timed_out
)
