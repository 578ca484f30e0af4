-- Why skip locked: a handler may have a transaction of its own open, in which it has recorded a step; it is told again.
-- Why the empty text: else a plan made for few jobs would look each one up among all leases, not by its id.
WITH told AS (
    SELECT DISTINCT ON (id, token) id, token, progress
    FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(progress)s::text[]) WITH ORDINALITY
        AS each (id, token, progress, place)
    ORDER BY id, token, place DESC
), held AS (
    SELECT seq, told.progress FROM told JOIN jobpipe.jobs USING (id, token) WHERE status || '' = 'running'
    FOR UPDATE OF jobs SKIP LOCKED
), noted AS (
    UPDATE jobpipe.jobs SET progress = held.progress::json
    FROM held WHERE jobs.seq = held.seq AND status || '' = 'running'
)
SELECT set_config('synchronous_commit', 'off', true)
