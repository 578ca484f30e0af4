-- :jobs is a JSON array of the arrays that rows.new_row makes. Why one statement for all: SQLite is then entered
-- once, and the rest of the process goes on meanwhile. The parts in braces are filled in where a job has more than most.
INSERT INTO jobs (id, type, queue, status, max_retries, priority, run_at, deadline, created_at, fingerprint, payload,
    key{columns})
SELECT
    value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, :now,
    value ->> 8, value -> 9, value ->> 10{values}
FROM json_each(:jobs)
WHERE true
ON CONFLICT (id) DO NOTHING
