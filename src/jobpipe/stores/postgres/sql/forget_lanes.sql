-- After a fold, with the journal locked: the tallies of lanes that have no jobs are deleted, and their totals stay with
-- their type, in rows without a queue.
WITH gone AS (
    DELETE FROM jobpipe.tallies WHERE queue <> '' AND NOT EXISTS (
        SELECT 1 FROM jobpipe.tallies AS other
        WHERE other.queue = tallies.queue AND other.type = tallies.type AND other.count <> 0
    )
    RETURNING type, status, total
)
INSERT INTO jobpipe.tallies (queue, type, status, count, total)
SELECT '', type, status, 0, sum(total) FROM gone GROUP BY type, status ORDER BY type, status
ON CONFLICT (queue, type, status) DO UPDATE SET total = tallies.total + excluded.total
