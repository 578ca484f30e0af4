-- :settlements is a JSON array of the arrays that rows.settled_row makes. One that was claimed ahead begins and ends at
-- once; the triggers tell both.
UPDATE jobs SET
    status = CASE is_cancelling WHEN 1 THEN 'cancelled' ELSE told.status END,
    attempts = attempts + (jobs.status = 'queued') - told.given_back,
    runs = runs + (jobs.status = 'queued') - told.given_back,
    started_at = CASE jobs.status WHEN 'queued' THEN coalesce(told.started_at, :now) ELSE jobs.started_at END,
    run_at = CASE is_cancelling WHEN 1 THEN run_at ELSE coalesce(:now + told.delay, run_at) END,
    result = CASE is_cancelling WHEN 1 THEN NULL ELSE told.result END,
    error = CASE
        WHEN told.given_back THEN jobs.error
        WHEN is_cancelling AND told.status = 'cancelled' THEN NULL
        ELSE told.error
    END,
    progress = coalesce(told.progress, CASE jobs.status WHEN 'running' THEN jobs.progress END),
    finished_at = CASE WHEN is_cancelling OR told.delay IS NULL THEN :now END,
    -- Why put together as text: SQLite's JSON functions would cost as much as all the rest.
    history = CASE
        WHEN told.given_back THEN history
        ELSE CASE
            WHEN history = '[]' THEN '['
            -- Only another program can have written what is not ours.
            WHEN NOT json_valid(history) OR json_type(history, '$[#-1]') IS NOT 'object' THEN '['
            WHEN json_array_length(history) >= :kept THEN rtrim(json_remove(history, '$[0]'), ']') || ','
            ELSE rtrim(history, ']') || ','
        END
        || '{"number":' || (runs + (jobs.status = 'queued'))
        || ',"began_at":' || printf('%.6f',
            CASE jobs.status WHEN 'queued' THEN coalesce(told.started_at, :now) ELSE jobs.started_at END)
        || ',"ended_at":' || :at || ',"worker":' || json_quote(worker) || ',"error":'
        || CASE WHEN told.error IS NULL OR is_cancelling AND told.status = 'cancelled' THEN 'null' ELSE told.error END
        || '}]'
    END,
    lease_until = NULL,
    is_parked = 0,
    is_cancelling = 0
FROM (
    SELECT
        value ->> 0 AS id, value ->> 1 AS token, value ->> 2 AS status, value ->> 3 AS given_back,
        value ->> 4 AS delay, value ->> 5 AS error, value ->> 6 AS progress, value -> 7 AS result,
        value ->> 8 AS started_at
    FROM json_each(:settlements)
) AS told
WHERE jobs.id = told.id AND jobs.token = told.token AND jobs.lease_until IS NOT NULL
