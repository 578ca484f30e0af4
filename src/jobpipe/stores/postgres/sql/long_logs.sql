SELECT job, attempt, size, number, cut + count FROM jobpipe.logs
WHERE job = ANY (%(jobs)s::bigint[])
ORDER BY job, number FOR UPDATE
