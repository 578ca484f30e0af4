-- One that had begun does not expire any more, also if its runs were given back.
UPDATE jobs SET
    status = 'queued', attempts = 0, run_at = :now, started_at = NULL, finished_at = NULL,
    expires_at = CASE WHEN started_at IS NULL OR runs > 0 THEN expires_at END,
    result = NULL, error = NULL, progress = NULL,
    payload = coalesce(:payload, payload), key = CASE WHEN :payload IS NULL THEN key ELSE :key END
WHERE id = :id
