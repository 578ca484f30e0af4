-- Is a job behind another of its unique name that has ended? A program of an older version does not let it in.
SELECT EXISTS (
    SELECT 1 FROM jobs WHERE status = 'queued' AND is_parked = 3 AND NOT EXISTS (
        SELECT 1 FROM jobs AS begun
        WHERE begun.unique_name = jobs.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
    )
)
