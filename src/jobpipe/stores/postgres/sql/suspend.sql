-- Before they are settled, and only those that will be: record the sleeps and waits. One of that name that is recorded
-- already counts. A wait takes the place of others that have not timed out.
-- Why all of them are locked, also those that only end: so do all who change several running jobs, in this order.
WITH held AS MATERIALIZED (
    SELECT seq, move, name, delay
    FROM unnest(
        %(ids)s::text[], %(tokens)s::text[], %(moves)s::text[], %(names)s::text[], %(delays)s::float8[]
    ) AS told (id, token, move, name, delay)
    JOIN jobpipe.jobs USING (id, token)
    WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END AND NOT is_cancelling
    ORDER BY id FOR UPDATE OF jobs
), replaced AS (
    DELETE FROM jobpipe.suspensions USING held
    WHERE suspensions.job = held.seq AND suspensions.move = 'wait' AND held.move = 'wait'
        AND suspensions.name <> held.name AND NOT is_timed_out
)
INSERT INTO jobpipe.suspensions (job, move, name, until)
SELECT seq, move, name, jobpipe.now(%(now)s) + delay FROM held WHERE name IS NOT NULL
ON CONFLICT DO NOTHING
