SELECT attempt, cut, count, size,
    CASE WHEN sum(cut + count) OVER (ORDER BY number) > :after THEN lines ELSE '[]' END
FROM jobs LEFT JOIN logs ON logs.job = jobs.seq WHERE id = :id ORDER BY number
