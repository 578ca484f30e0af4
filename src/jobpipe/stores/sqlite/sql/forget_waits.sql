-- Of jobs that are about to leave: see 0016_durable.sql.
DELETE FROM suspensions WHERE move = 'wait' AND job IN (
    SELECT seq FROM jobs WHERE id IN (SELECT value FROM json_each(?)) AND status = 'waiting'
)
