-- What is recorded of them is kept but for their waits; from the start, only signals that were not used.
-- Of those with a unique name only the first, and only if no other of the name waits: the last column says which does.
WITH found AS MATERIALIZED (
    SELECT seq, id, status, unique_name FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE
), able AS MATERIALIZED (
    SELECT seq, CASE WHEN unique_name IS NOT NULL THEN coalesce(
        (
            SELECT id FROM jobpipe.jobs AS other
            WHERE other.unique_name = found.unique_name AND finished_at IS NULL AND started_at IS NULL
        ),
        nullif(first_value(id) OVER (
            PARTITION BY unique_name ORDER BY array_position(%(ids)s::text[], id::text)
        ), id)
    ) END AS other
    FROM found WHERE status IN ('failed', 'cancelled')
), revived AS (
    UPDATE jobpipe.jobs SET
        status = 'queued', attempts = 0, run_at = jobpipe.now(%(now)s), started_at = NULL, finished_at = NULL,
        result = NULL, error = NULL, progress = NULL, is_behind = false,
        payload = coalesce(%(payload)s::json, payload), key = CASE WHEN %(payload)s::json IS NULL THEN key ELSE %(key)s END
    FROM able WHERE jobs.seq = able.seq AND able.other IS NULL
    RETURNING jobs.seq
), suspensions AS (
    DELETE FROM jobpipe.suspensions USING revived WHERE job = seq AND (move = 'wait' OR %(from_start)s)
), steps AS (
    DELETE FROM jobpipe.steps USING revived WHERE job = seq AND %(from_start)s
), signals AS (
    DELETE FROM jobpipe.signals USING revived WHERE job = seq AND is_used AND %(from_start)s
)
SELECT id, status, unique_name, other FROM found LEFT JOIN able USING (seq)
