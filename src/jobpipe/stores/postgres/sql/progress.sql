-- Why the empty text: else a plan made for few jobs would look each one up among all leases, not by its id.
WITH told AS (
    SELECT * FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(progress)s::text[]) WITH ORDINALITY
        AS each (id, token, progress, place)
), held AS (
    SELECT DISTINCT ON (seq) seq, told.progress
    FROM told JOIN jobpipe.jobs USING (id, token) WHERE status || '' = 'running'
    ORDER BY seq, place DESC
), noted AS (
    UPDATE jobpipe.jobs SET progress = held.progress::json
    FROM held WHERE jobs.seq = held.seq AND status || '' = 'running'
)
SELECT set_config('synchronous_commit', 'off', true)
