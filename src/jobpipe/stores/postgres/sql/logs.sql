SELECT attempt, cut, count, size,
    CASE WHEN sum(cut + count) OVER (ORDER BY number) > %(after)s THEN lines ELSE '[]' END
FROM jobpipe.jobs LEFT JOIN jobpipe.logs ON logs.job = jobs.seq WHERE id = %(id)s ORDER BY number
