-- Those that a choice found, as far as nobody else has taken them meanwhile. Why the time of now, not that of the choice:
-- a slow network must shorten no lease, and what became ready during the choice did not begin before it.
WITH chosen AS MATERIALIZED (
    SELECT jobs.seq, told.gate, told.starts_in, told.place, CASE
        WHEN error IS NULL AND progress IS NULL AND result IS NULL AND started_at IS NULL AND finished_at IS NULL
            AND history = '{}' AND trace IS NULL THEN NULL
        ELSE ARRAY[error::text, progress::text, result::text, started_at::text, finished_at::text, trace] || history
    END AS past
    FROM unnest(%(seqs)s::bigint[], %(gates)s::text[], %(starts_in)s::float8[]) WITH ORDINALITY
        AS told (seq, gate, starts_in, place)
    JOIN jobpipe.jobs USING (seq)
    WHERE jobs.status = 'queued' AND jobs.lease_until IS NULL
        AND (expires_at IS NULL OR expires_at > jobpipe.now(%(told)s) OR started_at IS NOT NULL OR runs > 0)
    FOR UPDATE OF jobs SKIP LOCKED
), ranked AS (
    SELECT seq, gate, starts_in, past, which_begin AS begins
    FROM chosen
), claimed AS (
    UPDATE jobpipe.jobs SET
        status = CASE WHEN begins THEN 'running' ELSE status END,
        attempts = attempts + begins::integer, runs = runs + begins::integer,
        started_at = CASE WHEN begins THEN now + ranked.starts_in ELSE started_at END,
        progress = CASE WHEN NOT begins THEN progress END, worker = %(worker)s, token = %(token)s,
        lease_until = now + %(lease)s::float8, is_cancelling = false, is_parked = NOT begins, gate = ranked.gate
    FROM ranked, jobpipe.now(%(told)s) AS now WHERE jobs.seq = ranked.seq
    RETURNING
        -priority AS rank, run_at, jobs.seq, id, type, queue, attempts + (NOT begins)::integer AS attempts,
        max_retries, deadline, created_at, now + ranked.starts_in AS started_at, payload::text AS payload, key,
        ranked.starts_in, begins, past,
        CASE WHEN NOT begins AND runs = 0 AND jobs.started_at IS NULL THEN expires_at END AS expires_at
), facts AS (
    SELECT
        set_config('synchronous_commit', 'off', true),
        CASE WHEN EXISTS (SELECT 1 FROM claimed) THEN jobpipe.tell_changes() END
)
SELECT claimed.* FROM claimed, facts
