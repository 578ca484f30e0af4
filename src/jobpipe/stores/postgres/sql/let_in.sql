-- Those that are behind a job which has ended. It is done when that one ends; this is for rows that others had locked.
UPDATE jobpipe.jobs SET is_parked = false, is_behind = false
WHERE seq = ANY(ARRAY(
    SELECT seq FROM jobpipe.jobs
    WHERE is_behind AND NOT EXISTS (
        SELECT 1 FROM jobpipe.jobs AS begun
        WHERE begun.unique_name = jobs.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
    )
    FOR UPDATE SKIP LOCKED
))
