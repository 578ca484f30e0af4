DELETE FROM jobpipe.jobs WHERE seq IN (
    SELECT seq FROM jobpipe.jobs WHERE finished_at < jobpipe.now(%(now)s) - %(keep)s::float8
    ORDER BY finished_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
