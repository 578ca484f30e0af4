-- Those that a choice found, as far as nobody else has taken them meanwhile. Why the time of now, not that of the choice:
-- a slow network must shorten no lease, and what became ready during the choice did not begin before it.
WITH chosen AS MATERIALIZED (
    SELECT jobs.seq, told.gate, told.starts_in, CASE
        WHEN error IS NULL AND progress IS NULL AND result IS NULL AND started_at IS NULL AND finished_at IS NULL
            AND history = '{}' THEN NULL
        ELSE ARRAY[error::text, progress::text, result::text, started_at::text, finished_at::text] || history
    END AS past
    FROM unnest(%(seqs)s::bigint[], %(gates)s::text[], %(starts_in)s::float8[]) AS told (seq, gate, starts_in)
    JOIN jobpipe.jobs USING (seq)
    WHERE jobs.status = 'queued'
    FOR UPDATE OF jobs SKIP LOCKED
), claimed AS (
    UPDATE jobpipe.jobs SET
        status = 'running', attempts = attempts + 1, runs = runs + 1, started_at = now + chosen.starts_in,
        progress = NULL, worker = %(worker)s, token = %(token)s, lease_until = now + %(lease)s::float8,
        is_cancelling = false, gate = chosen.gate
    FROM chosen, jobpipe.now(%(told)s) AS now WHERE jobs.seq = chosen.seq
    RETURNING
        -priority AS rank, run_at, jobs.seq, id, type, queue, attempts, max_retries, deadline, created_at,
        started_at, payload::text AS payload, key, chosen.starts_in, past
), facts AS (
    SELECT
        set_config('synchronous_commit', 'off', true),
        CASE WHEN EXISTS (SELECT 1 FROM claimed) THEN jobpipe.tell_changes() END
)
SELECT claimed.* FROM claimed, facts
