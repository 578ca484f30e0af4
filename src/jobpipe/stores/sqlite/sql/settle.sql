UPDATE jobs SET
    status = CASE is_cancelling WHEN 1 THEN 'cancelled' ELSE :status END,
    attempts = attempts - :given_back,
    runs = runs - :given_back,
    run_at = CASE is_cancelling WHEN 1 THEN run_at ELSE coalesce(:run_at, run_at) END,
    result = CASE is_cancelling WHEN 1 THEN NULL ELSE :result END,
    error = CASE
        WHEN :given_back THEN error
        WHEN is_cancelling AND :status NOT IN ('failed', 'scheduled') THEN NULL
        ELSE :error
    END,
    progress = coalesce(:progress, progress),
    finished_at = CASE is_cancelling WHEN 1 THEN :now ELSE :finished_at END,
    history = CASE :given_back WHEN 1 THEN history ELSE json_insert(
        CASE json_array_length(history) >= :kept WHEN 1 THEN json_remove(history, '$[0]') ELSE history END,
        '$[#]',
        json_object('number', runs, 'began_at', json(printf('%.6f', started_at)), 'ended_at', json(printf('%.6f', :now)), 'worker', worker, 'error', json(:error))
    ) END,
    lease_until = NULL,
    is_cancelling = 0
WHERE id = :id AND token = :token AND status = 'running'
