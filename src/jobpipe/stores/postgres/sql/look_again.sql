UPDATE jobpipe.gates SET opens_at = 0
FROM (SELECT type, key FROM jobpipe.gates WHERE opens_at IS NOT NULL ORDER BY type, key FOR UPDATE) AS closed
WHERE gates.type = closed.type AND gates.key = closed.key
