-- The job, if the lease is held; it is until the end of the transaction.
-- Why shared: see write_steps.sql. Why a CASE: see extend.sql.
SELECT seq FROM jobpipe.jobs
WHERE id = %(id)s AND token = %(token)s AND CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
FOR SHARE
