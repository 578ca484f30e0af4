-- Why by id: so do all who change several running jobs. Why locked: else a settlement might end the run meanwhile.
-- Why shared: see write_steps.sql.
-- Why a CASE: else a plan made for few jobs would look each one up among all leases, not by its id.
WITH held AS (
    SELECT seq, id, token, runs + (status = 'queued')::integer AS number
    FROM (SELECT DISTINCT id, token FROM unnest(%(log_ids)s::text[], %(log_tokens)s::text[]) AS each (id, token)) AS told
    JOIN jobpipe.jobs USING (id, token)
    WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
    ORDER BY id FOR SHARE OF jobs
),
add_chunks
SELECT (SELECT jobs FROM too_long), set_config('synchronous_commit', 'off', true)
