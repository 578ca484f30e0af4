-- Why an array: it is made once. A subquery may be run for each row, and each time it finds others, since these are locked.
DELETE FROM jobpipe.jobs WHERE seq = ANY(ARRAY(
    SELECT seq FROM (
        SELECT seq FROM jobpipe.jobs
        WHERE finished_at < jobpipe.now(%(now)s) - %(keep)s::float8 AND status <> 'failed'
        ORDER BY finished_at LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ) AS ended
    UNION ALL
    SELECT seq FROM (
        SELECT seq FROM jobpipe.jobs
        WHERE finished_at < jobpipe.now(%(now)s) - %(keep_failed)s::float8 AND status = 'failed'
        ORDER BY finished_at LIMIT %(limit)s
        FOR UPDATE SKIP LOCKED
    ) AS failed
    LIMIT %(limit)s
))
