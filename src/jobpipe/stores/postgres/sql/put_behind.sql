-- Those that wait for another of their name, which has begun; whoever calls has the names for himself: see let_next_in.
UPDATE jobpipe.jobs SET is_parked = true, is_behind = true
WHERE seq = ANY(ARRAY(
    SELECT seq FROM jobpipe.jobs
    WHERE unique_name = ANY(%(names)s::text[]) AND unique_name IS NOT NULL AND finished_at IS NULL AND started_at IS NULL
        AND status = 'queued' AND lease_until IS NULL AND NOT is_behind AND EXISTS (
            SELECT 1 FROM jobpipe.jobs AS begun
            WHERE begun.unique_name = jobs.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
        )
    FOR UPDATE SKIP LOCKED
))
