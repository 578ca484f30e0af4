-- Whatever is committed by now gets the next numbers; what commits later, though it began before, gets later ones.
WITH taken AS (
    DELETE FROM jobpipe.journal RETURNING *
), counted AS (
    INSERT INTO jobpipe.tallies (queue, type, status, count, total)
    SELECT queue, type, status, sum(count), sum(total)
    FROM (
        SELECT queue, type, was AS status, -count AS count, 0 AS total FROM taken WHERE was IS NOT NULL
        UNION ALL
        SELECT queue, type, status, count, count FROM taken WHERE status IS NOT NULL
    ) AS every
    GROUP BY queue, type, status
    ORDER BY queue, type, status
    ON CONFLICT (queue, type, status) DO UPDATE SET
        count = tallies.count + excluded.count, total = tallies.total + excluded.total
)
INSERT INTO jobpipe.events (number, status, jobs, attempts)
SELECT
    (SELECT coalesce(max(number), 0) FROM jobpipe.events) + sum(cardinality(jobs)) OVER (ORDER BY entry),
    status, jobs, attempts
FROM taken WHERE status IS NOT NULL
