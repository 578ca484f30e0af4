WITH found AS MATERIALIZED (
    SELECT seq, id, status FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE
), deleted AS (
    DELETE FROM jobpipe.jobs USING found
    WHERE jobs.seq = found.seq AND found.status NOT IN ('scheduled', 'waiting', 'queued', 'running')
)
SELECT id, status FROM found
