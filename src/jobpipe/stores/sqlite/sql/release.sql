UPDATE jobs SET
    status = CASE is_cancelling WHEN 1 THEN 'cancelled' ELSE 'queued' END,
    finished_at = CASE is_cancelling WHEN 1 THEN :now END,
    attempts = attempts - 1, runs = runs - 1, key = coalesce(:key, key),
    worker = NULL, token = NULL, gate = NULL, lease_until = NULL, is_cancelling = 0
WHERE id = :id AND token = :token AND status = 'running'
