UPDATE jobs SET
    status = CASE is_cancelling WHEN 1 THEN 'cancelled' ELSE 'queued' END,
    finished_at = CASE is_cancelling WHEN 1 THEN :now END,
    attempts = attempts - (status = 'running'), runs = runs - (status = 'running'), key = coalesce(:key, key),
    worker = NULL, token = NULL, gate = NULL, lease_until = NULL, is_parked = 0, is_cancelling = 0
WHERE id = :id AND token = :token AND lease_until IS NOT NULL
