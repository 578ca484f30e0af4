-- Only by those who still have their lease; the longest counts.
INSERT INTO jobpipe.cooling (type, until)
SELECT type, max(jobpipe.now(%(now)s) + told.seconds)
FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(seconds)s::float8[]) AS told (id, token, seconds)
JOIN jobpipe.jobs USING (id, token) WHERE status = 'running'
GROUP BY type ORDER BY type
ON CONFLICT (type) DO UPDATE SET until = greatest(cooling.until, excluded.until)
