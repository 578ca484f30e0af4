-- A job that waits for a signal that is there.
UPDATE jobs SET status = 'queued', run_at = :now
WHERE seq = :job AND status = 'waiting' AND EXISTS (
    SELECT 1 FROM suspensions JOIN signals USING (job, name)
    WHERE suspensions.job = :job AND move = 'wait' AND is_timed_out = 0
)
