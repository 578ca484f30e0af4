-- Only by those who still have their lease; the longest counts.
-- Why a CASE: else a plan made for few jobs would look each one up among all leases, not by its id.
INSERT INTO jobpipe.cooling (type, until)
SELECT type, max(jobpipe.now(%(now)s) + told.seconds)
FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(seconds)s::float8[]) AS told (id, token, seconds)
JOIN jobpipe.jobs USING (id, token)
WHERE CASE WHEN lease_until IS NOT NULL THEN status IN ('queued', 'running') END
GROUP BY type ORDER BY type
ON CONFLICT (type) DO UPDATE SET until = greatest(cooling.until, excluded.until)
