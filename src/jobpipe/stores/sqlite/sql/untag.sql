DELETE FROM tagged WHERE (tag, job) IN (
    SELECT each.value, jobs.seq FROM jobs, json_each(jobs.tags) AS each WHERE jobs.id = ? AND jobs.tags IS NOT NULL
)
