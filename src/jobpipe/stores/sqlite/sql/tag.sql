INSERT INTO tagged (tag, job)
SELECT each.value, jobs.seq FROM jobs, json_each(jobs.tags) AS each WHERE jobs.id = ? AND jobs.tags IS NOT NULL
