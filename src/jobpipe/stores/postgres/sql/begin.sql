-- Why skip locked: its handler may have a transaction of its own open, in which it has recorded a step; it is told again.
-- Why a CASE: see extend.sql.
WITH told AS (
    SELECT * FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(started_at)s::float8[]) AS each (id, token, started_at)
), held AS MATERIALIZED (
    SELECT
        jobs.seq, id, token, status, is_cancelling, coalesce(nullif(told.started_at, 0), now) AS began_at, now,
        status = 'queued' AND runs = 0 AND jobs.started_at IS NULL
            AND coalesce(expires_at <= coalesce(nullif(told.started_at, 0), now), false) AS is_late
    FROM told JOIN jobpipe.jobs USING (id, token), jobpipe.now(%(now)s) AS now
    WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
    FOR UPDATE OF jobs SKIP LOCKED
), begun AS (
    UPDATE jobpipe.jobs SET
        status = 'running', attempts = attempts + 1, runs = runs + 1, started_at = held.began_at,
        progress = NULL, is_parked = false
    FROM held WHERE jobs.seq = held.seq AND held.status = 'queued' AND NOT is_late
), expired AS (
    UPDATE jobpipe.jobs SET
        status = 'expired', finished_at = held.now, token = NULL, lease_until = NULL, gate = NULL, is_parked = false
    FROM held WHERE jobs.seq = held.seq AND is_late
)
SELECT id, token, held.is_cancelling, set_config('synchronous_commit', 'off', true)
FROM told JOIN jobpipe.jobs USING (id, token) LEFT JOIN held USING (id, token)
WHERE CASE WHEN lease_until IS NOT NULL THEN jobs.status IN ('queued', 'running') END AND is_late IS NOT TRUE
