WITH found AS MATERIALIZED (
    SELECT seq, id, status FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE
), revived AS (
    UPDATE jobpipe.jobs SET
        status = 'queued', attempts = 0, run_at = jobpipe.now(%(now)s), started_at = NULL, finished_at = NULL,
        result = NULL, error = NULL, progress = NULL
    FROM found WHERE jobs.seq = found.seq AND found.status IN ('failed', 'cancelled')
)
SELECT id, status FROM found
