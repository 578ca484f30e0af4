UPDATE jobs SET
    status = 'queued', attempts = 0, run_at = :now, started_at = NULL, finished_at = NULL,
    result = NULL, error = NULL, progress = NULL,
    payload = coalesce(:payload, payload), key = CASE WHEN :payload IS NULL THEN key ELSE :key END
WHERE id = :id
