-- Why locked: else the lease might end meanwhile. Why shared: a handler may have a transaction of its own open, in which it
-- has recorded a step, and this must not wait for its end.
-- Why a CASE: see extend.sql.
WITH held AS MATERIALIZED (
    SELECT seq, id, token
    FROM (SELECT DISTINCT id, token FROM unnest(%(ids)s::text[], %(tokens)s::text[]) AS each (id, token)) AS told
    JOIN jobpipe.jobs USING (id, token)
    WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
    ORDER BY id FOR SHARE OF jobs
), written AS (
    INSERT INTO jobpipe.steps (job, name, began_at, ended_at, result)
    SELECT seq, step.name, step.began_at, step.ended_at, step.result
    FROM unnest(
        %(ids)s::text[], %(tokens)s::text[], %(names)s::text[], %(began_at)s::float8[], %(ended_at)s::float8[],
        %(results)s::text[]
    ) WITH ORDINALITY AS step (id, token, name, began_at, ended_at, result, place) JOIN held USING (id, token)
    ORDER BY place
    ON CONFLICT DO NOTHING
)
SELECT id, token FROM held
