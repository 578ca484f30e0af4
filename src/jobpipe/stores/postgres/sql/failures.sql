SELECT type, left(error::text, %(head)s), finished_at, id FROM jobpipe.jobs
WHERE status = 'failed' AND finished_at IS NOT NULL ORDER BY finished_at DESC, seq DESC LIMIT %(limit)s
