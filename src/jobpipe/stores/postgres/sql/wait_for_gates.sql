-- Nobody looks at a gate before which jobs are parked, from now until the end of the transaction.
SELECT pg_advisory_xact_lock_shared(hashtext('jobpipe.type'), hashtext(type))
FROM (SELECT DISTINCT type FROM jobpipe.gates WHERE opens_at IS NOT NULL ORDER BY type) AS closed
