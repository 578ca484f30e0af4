-- The lanes that have jobs are found by leaps through the index; the best of each are merged, and as many
-- locked as are wanted: those that others have locked are skipped, which is why it looks at more. Rows are found again
-- by their place, which holds for one statement: one that was changed meanwhile is left for the next claim.
WITH RECURSIVE lanes AS (
    SELECT type, (
        SELECT queue FROM jobpipe.jobs
        WHERE status = 'queued' AND NOT is_parked AND jobs.type = wanted.type ORDER BY queue LIMIT 1
    ) AS queue
    FROM (SELECT DISTINCT unnest(%(types)s::text[]) AS type) AS wanted
    UNION ALL
    SELECT type, (
        SELECT queue FROM jobpipe.jobs
        WHERE status = 'queued' AND NOT is_parked AND jobs.type = lanes.type AND jobs.queue > lanes.queue
        ORDER BY queue LIMIT 1
    )
    FROM lanes WHERE queue IS NOT NULL
), open_lanes AS MATERIALIZED (
    SELECT lanes.type, lanes.queue, cooling.until
    FROM lanes LEFT JOIN jobpipe.cooling ON cooling.type = lanes.type AND cooling.until > jobpipe.now(%(now)s)
    WHERE lanes.queue IS NOT NULL AND lanes.queue NOT IN (SELECT queue FROM jobpipe.paused) only_served
), heads AS MATERIALIZED (
    SELECT head.* FROM open_lanes CROSS JOIN LATERAL (
        SELECT ctid AS place, seq, priority, run_at, unique_name, started_at AS begun_at FROM jobpipe.jobs
        WHERE status = 'queued' AND NOT is_parked AND jobs.type = open_lanes.type AND jobs.queue = open_lanes.queue
        ORDER BY priority DESC, run_at, seq LIMIT %(look)s
    ) AS head
    WHERE until IS NULL
    ORDER BY priority DESC, run_at, seq LIMIT %(look)s
), behind AS MATERIALIZED (
    -- Those of which another of the same unique name has begun; most have none, and the rest is not looked at.
    SELECT seq, unique_name FROM heads
    WHERE unique_name IS NOT NULL AND begun_at IS NULL AND EXISTS (
        SELECT 1 FROM jobpipe.jobs AS begun
        WHERE begun.unique_name = heads.unique_name AND begun.finished_at IS NULL AND begun.started_at IS NOT NULL
    )
), chosen AS MATERIALIZED (
    SELECT jobs.ctid AS place, heads.priority, heads.run_at, heads.seq,
        is_suspect OR jobs.unique_name IS NOT NULL AS is_alone, CASE
        WHEN error IS NULL AND progress IS NULL AND result IS NULL AND started_at IS NULL AND finished_at IS NULL
            AND history = '{}' AND trace IS NULL THEN NULL
        ELSE ARRAY[error::text, progress::text, result::text, started_at::text, finished_at::text, trace] || history
    END AS past
    FROM heads JOIN jobpipe.jobs ON jobs.ctid = heads.place
    WHERE jobs.status = 'queued' AND jobs.lease_until IS NULL
        AND (expires_at IS NULL OR expires_at > jobpipe.now(%(now)s) OR started_at IS NOT NULL OR runs > 0)
        AND (heads.unique_name IS NULL OR heads.seq NOT IN (SELECT seq FROM behind))
    ORDER BY heads.priority DESC, heads.run_at, heads.seq LIMIT %(limit)s
    FOR UPDATE OF jobs SKIP LOCKED
), ranked AS (
    SELECT place, is_alone, past, row_number() OVER (ORDER BY priority DESC, run_at, seq) AS rank FROM chosen
), taken AS (
    -- After the first that begin it ends before a suspect, or one with a unique name: none is claimed ahead.
    SELECT
        place, past, %(begin)s::integer IS NULL OR rank <= %(begin)s::integer AS begins,
        count(*) FILTER (WHERE is_alone AND rank > %(begin)s::integer) OVER (ORDER BY rank) AS alone
    FROM ranked
), claimed AS (
    UPDATE jobpipe.jobs SET
        status = CASE WHEN begins THEN 'running' ELSE status END,
        attempts = attempts + begins::integer, runs = runs + begins::integer,
        started_at = CASE WHEN begins THEN jobpipe.now(%(now)s) ELSE started_at END,
        progress = CASE WHEN NOT begins THEN progress END, worker = %(worker)s, token = %(token)s,
        lease_until = jobpipe.now(%(now)s) + %(lease)s::float8, is_cancelling = false, is_parked = NOT begins
    FROM taken WHERE jobs.ctid = taken.place AND alone = 0
    RETURNING
        -priority AS rank, run_at, jobs.seq, id, type, queue, attempts + (NOT begins)::integer AS attempts,
        max_retries, deadline, created_at, jobpipe.now(%(now)s) AS started_at, payload::text AS payload, key,
        0.0::float8 AS starts_in, begins, past,
        CASE WHEN NOT begins AND runs = 0 AND jobs.started_at IS NULL THEN expires_at END AS expires_at
), facts AS (
    SELECT
        (SELECT count(*) FROM heads) AS looked,
        (SELECT count(*) FROM chosen) AS locked,
        ARRAY(SELECT unique_name FROM behind) AS behind,
        least(
            (SELECT min(run_at) FROM jobpipe.jobs WHERE (status = 'scheduled' OR status = 'waiting') AND run_at < 'infinity'),
            (SELECT min(until) FROM open_lanes)
        ) - jobpipe.now(%(now)s) AS due_in,
        (
            SELECT min(greatest(first.opens_at, cooling.until))
            FROM unnest(%(types)s::text[]) AS wanted (type)
            CROSS JOIN LATERAL (
                SELECT opens_at FROM jobpipe.gates
                WHERE opens_at IS NOT NULL AND gates.type = wanted.type ORDER BY opens_at LIMIT 1
            ) AS first
            LEFT JOIN jobpipe.cooling ON cooling.type = wanted.type
        ) - jobpipe.now(%(now)s) AS opens_in,
        -- Why not waited for to be on disk: what a crash takes back of claims, happens again.
        set_config('synchronous_commit', 'off', true),
        -- Who begins to listen between this look and the commit learns of it a second later, by himself.
        CASE WHEN EXISTS (SELECT 1 FROM claimed) THEN jobpipe.tell_changes() END
)
SELECT claimed.*, looked, locked, behind, due_in, opens_in FROM facts LEFT JOIN claimed ON true
