-- Who has the gates of a type for himself is through with them by now: see wait_for_gates.sql.
UPDATE jobpipe.gates SET opens_at = 0
FROM (SELECT type, key FROM jobpipe.gates WHERE opens_at IS NOT NULL ORDER BY type, key FOR UPDATE) AS closed
WHERE gates.type = closed.type AND gates.key = closed.key
