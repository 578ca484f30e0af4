DELETE FROM jobpipe.jobs WHERE seq IN (
    SELECT seq FROM jobpipe.jobs
    WHERE id = ANY(%(ids)s::text[]) AND status IN ('scheduled', 'waiting', 'queued')
    ORDER BY id FOR UPDATE
)
