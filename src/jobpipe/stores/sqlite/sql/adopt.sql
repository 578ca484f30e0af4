-- :jobs is a JSON array of the arrays that rows.adopted_row makes.
INSERT INTO jobs (
    id, type, queue, status, max_retries, priority, run_at, deadline, fingerprint, key, attempts, runs, created_at,
    started_at, error, progress, history, payload, expires_at, unique_name, on_duplicate, max_wait, tags, trace
)
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15, value ->> 16, value -> 17,
    value ->> 18, value ->> 19, value ->> 20, value ->> 21, value ->> 22, value ->> 23
FROM json_each(:jobs)
WHERE true
ON CONFLICT (id) DO NOTHING
