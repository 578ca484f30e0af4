-- Of jobs that are about to leave: see 0015_durable.sql.
DELETE FROM jobpipe.suspensions WHERE move = 'wait' AND job IN (
    SELECT seq FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[]) AND status = 'waiting' ORDER BY id FOR UPDATE
)
