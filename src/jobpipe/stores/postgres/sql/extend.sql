-- Why skip locked: whoever has the row is about to settle it, or to tell that it is to be cancelled; the next
-- extension will see. So this waits for nobody, and nobody in a circle.
-- Why a CASE: else a plan made for few jobs would look each one up among all leases, not by its id.
WITH told AS (
    SELECT * FROM unnest(%(ids)s::text[], %(tokens)s::text[]) WITH ORDINALITY AS each (id, token, place)
), held AS (
    SELECT seq FROM told JOIN jobpipe.jobs USING (id, token)
    WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
    FOR UPDATE OF jobs SKIP LOCKED
), extended AS (
    UPDATE jobpipe.jobs SET
        -- Why the time of now, not that of the statement: should it have to wait, no lease is shorter for that.
        lease_until = coalesce(%(now)s, extract(epoch FROM clock_timestamp())::float8) + %(seconds)s::float8
    WHERE seq IN (SELECT seq FROM held)
)
SELECT jobs.is_cancelling, set_config('synchronous_commit', 'off', true)
FROM told LEFT JOIN jobpipe.jobs ON jobs.id = told.id AND jobs.token = told.token
    AND CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
ORDER BY told.place
