SELECT job, attempt, cut, count, size, lines FROM jobpipe.logs
WHERE job = ANY (%(jobs)s::bigint[]) ORDER BY job, number
