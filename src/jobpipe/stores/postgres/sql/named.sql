SELECT unique_name, id, type, queue, status, started_at IS NOT NULL FROM jobpipe.jobs
WHERE unique_name = ANY(%(names)s::text[]) AND unique_name IS NOT NULL AND finished_at IS NULL
