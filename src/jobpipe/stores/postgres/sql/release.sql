UPDATE jobpipe.jobs SET
    status = CASE WHEN is_cancelling THEN 'cancelled' ELSE 'queued' END,
    finished_at = CASE WHEN is_cancelling THEN jobpipe.now(%(now)s) END,
    attempts = attempts - (status = 'running')::integer, runs = runs - (status = 'running')::integer,
    worker = NULL, token = NULL, lease_until = NULL, gate = NULL, is_cancelling = false, is_parked = false,
    key = coalesce(told.key, jobs.key)
FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(keys)s::text[]) AS told (id, token, key)
-- Why a CASE: else a plan made for few jobs would look each one up among all leases, not by its id.
WHERE jobs.id = told.id AND jobs.token = told.token
    AND CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
RETURNING told.id, told.token
