UPDATE jobpipe.jobs SET
    status = CASE WHEN is_cancelling THEN 'cancelled' ELSE told.status END,
    attempts = attempts - given_back,
    runs = runs - given_back,
    run_at = CASE WHEN is_cancelling THEN run_at ELSE coalesce(now + told.delay, run_at) END,
    result = CASE WHEN NOT is_cancelling THEN told.result::json END,
    error = CASE
        WHEN given_back = 1 THEN jobs.error
        WHEN is_cancelling AND told.status NOT IN ('failed', 'scheduled') THEN NULL
        ELSE told.error::json
    END,
    progress = coalesce(told.progress::json, jobs.progress),
    finished_at = CASE WHEN is_cancelling OR told.delay IS NULL THEN now END,
    history = CASE WHEN given_back = 1 THEN history ELSE (
        history || json_build_array(
            runs, started_at, now, worker,
            CASE WHEN NOT is_cancelling OR told.status IN ('failed', 'scheduled') THEN told.error::json END
        )::text
    )[greatest(cardinality(history) + 2 - %(kept)s, 1):] END,
    lease_until = NULL,
    gate = NULL,
    is_cancelling = false
FROM unnest(
    %(ids)s::text[], %(tokens)s::text[], %(statuses)s::text[], %(given_back)s::integer[], %(delays)s::float8[],
    %(errors)s::text[], %(progress)s::text[], %(results)s::text[]
) AS told (id, token, status, given_back, delay, error, progress, result),
jobpipe.now(%(now)s) AS now
-- Why the empty text: else a plan made for few jobs would look each one up among all leases, not by its id.
WHERE jobs.id = told.id AND jobs.token = told.token AND jobs.status || '' = 'running'
