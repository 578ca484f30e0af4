-- What was claimed ahead loses its lease, as in cancel_waiting.sql.
UPDATE jobs SET
    status = CASE WHEN told.due_at <= :now THEN 'queued' ELSE 'scheduled' END,
    run_at = told.due_at, max_retries = :max_retries, priority = :priority, deadline = :deadline, key = :key,
    payload = :payload, expires_at = :expires_at, on_duplicate = :on_duplicate, max_wait = :max_wait, tags = :tags,
    trace = :trace,
    gate = NULL, lease_until = NULL, token = CASE WHEN lease_until IS NULL THEN token END,
    is_parked = CASE is_parked WHEN 3 THEN 3 ELSE 0 END
FROM (
    SELECT seq, min(:due_at, coalesce(created_at + :max_wait, :due_at)) AS due_at FROM jobs WHERE id = :id
) AS told
WHERE jobs.seq = told.seq
