-- The totals of lanes that have no jobs any more stay with their type, in rows without a queue.
INSERT INTO tallies (queue, type, status, count, total)
SELECT '', type, status, 0, sum(total) FROM tallies AS gone
WHERE queue <> '' AND NOT EXISTS (
    SELECT 1 FROM tallies WHERE queue = gone.queue AND type = gone.type AND count > 0
)
GROUP BY type, status
ON CONFLICT DO UPDATE SET total = total + excluded.total
