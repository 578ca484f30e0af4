-- Why a CASE: see extend.sql.
WITH held AS MATERIALIZED (
    SELECT jobs.seq, id, token, status, is_cancelling, told.started_at
    FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(started_at)s::float8[]) AS told (id, token, started_at)
    JOIN jobpipe.jobs USING (id, token)
    WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
    ORDER BY id FOR UPDATE OF jobs
), begun AS (
    UPDATE jobpipe.jobs SET
        status = 'running', attempts = attempts + 1, runs = runs + 1, started_at = coalesce(nullif(held.started_at, 0), now),
        progress = NULL, is_parked = false
    FROM held, jobpipe.now(%(now)s) AS now WHERE jobs.seq = held.seq AND held.status = 'queued'
)
SELECT id, token, is_cancelling, set_config('synchronous_commit', 'off', true) FROM held
