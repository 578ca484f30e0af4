-- One that was claimed ahead is queued until now: it begins and ends at once, of which note_moved tells both.
UPDATE jobpipe.jobs SET
    status = CASE WHEN is_cancelling THEN 'cancelled' ELSE told.status END,
    attempts = attempts - given_back + (jobs.status = 'queued')::integer,
    runs = runs - given_back + (jobs.status = 'queued')::integer,
    started_at = CASE WHEN jobs.status = 'queued' THEN coalesce(nullif(told.started_at, 0), now) ELSE jobs.started_at END,
    run_at = CASE WHEN is_cancelling THEN run_at ELSE coalesce(now + told.delay, run_at) END,
    result = CASE WHEN NOT is_cancelling THEN told.result::json END,
    error = CASE
        WHEN given_back = 1 THEN jobs.error
        WHEN is_cancelling AND told.status NOT IN ('failed', 'scheduled') THEN NULL
        ELSE told.error::json
    END,
    progress = coalesce(told.progress::json, CASE WHEN jobs.status = 'running' THEN jobs.progress END),
    finished_at = CASE WHEN is_cancelling OR told.delay IS NULL THEN now END,
    history = CASE WHEN given_back = 1 THEN history ELSE (
        history || json_build_array(
            runs + (jobs.status = 'queued')::integer,
            CASE WHEN jobs.status = 'queued' THEN coalesce(nullif(told.started_at, 0), now) ELSE jobs.started_at END,
            now, worker,
            CASE WHEN NOT is_cancelling OR told.status IN ('failed', 'scheduled') THEN told.error::json END
        )::text
    )[greatest(cardinality(history) + 2 - %(kept)s, 1):] END,
    lease_until = NULL,
    gate = NULL,
    is_cancelling = false,
    is_parked = false,
    is_suspect = false
FROM unnest(
    %(ids)s::text[], %(tokens)s::text[], %(statuses)s::text[], %(given_back)s::integer[], %(delays)s::float8[],
    %(errors)s::text[], %(progress)s::text[], %(results)s::text[], %(started_at)s::float8[]
) AS told (id, token, status, given_back, delay, error, progress, result, started_at),
jobpipe.now(%(now)s) AS now
-- Why a CASE: else a plan made for few jobs would look each one up among all leases, not by its id.
WHERE jobs.id = told.id AND jobs.token = told.token
    AND CASE WHEN lease_until IS NOT NULL THEN jobs.status IN ('queued', 'running') END
