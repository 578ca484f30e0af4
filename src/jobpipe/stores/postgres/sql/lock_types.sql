-- Whoever looks at the gates of a type has them for himself until the end of his transaction: those of the types that he
-- has limits for, and those before which jobs are parked and whose time has come.
SELECT type, pg_advisory_xact_lock(hashtext('jobpipe.type'), hashtext(type))
FROM (
    SELECT unnest(%(limited)s::text[]) COLLATE "C" AS type
    UNION
    SELECT type FROM jobpipe.gates WHERE opens_at <= jobpipe.now(%(now)s) AND type = ANY(%(types)s::text[])
    ORDER BY 1
) AS wanted
