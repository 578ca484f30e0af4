UPDATE jobs SET
    status = CASE WHEN is_cancelling THEN 'cancelled' WHEN attempts > max_retries THEN 'failed' ELSE 'queued' END,
    finished_at = CASE WHEN is_cancelling OR attempts > max_retries THEN :now END,
    error = :error,
    history = json_insert(
        CASE
            WHEN NOT json_valid(history) THEN '[]' -- only somebody else can have put that there
            WHEN json_array_length(history) >= :kept THEN json_remove(history, '$[0]')
            ELSE history
        END,
        '$[#]',
        json_object('number', runs, 'began_at', json(printf('%.6f', started_at)), 'ended_at', json(printf('%.6f', :now)), 'worker', worker, 'error', json(:error))
    ),
    worker = NULL, token = NULL, gate = NULL, lease_until = NULL, is_cancelling = 0
WHERE seq = :seq
RETURNING status
