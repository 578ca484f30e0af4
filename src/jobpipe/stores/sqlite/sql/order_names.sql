-- Of each name: the job that waits is behind the one that has begun, and only while there is one.
UPDATE jobs SET is_parked = CASE is_parked WHEN 3 THEN 0 ELSE 3 END
WHERE unique_name IN (SELECT value FROM json_each(?)) AND finished_at IS NULL AND started_at IS NULL
    AND (is_parked = 3) <> EXISTS (
        SELECT 1 FROM jobs AS begun
        WHERE begun.unique_name = jobs.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
    )
