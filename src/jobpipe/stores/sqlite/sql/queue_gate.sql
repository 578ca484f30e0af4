-- Two counts, since those that run and those that were claimed ahead are in indexes of their own.
SELECT
    coalesce((SELECT next_at FROM gates WHERE type = '' AND key = :queue), 0),
    (SELECT count(*) FROM jobs INDEXED BY jobs_leased WHERE status = 'running' AND queue = :queue)
    + (
        SELECT count(*) FROM jobs INDEXED BY jobs_ahead
        WHERE status = 'queued' AND lease_until IS NOT NULL AND queue = :queue
    ),
    (
        SELECT json_group_array(id) FROM (
            SELECT id FROM (
                SELECT id, started_at, seq FROM jobs INDEXED BY jobs_leased WHERE status = 'running' AND queue = :queue
                UNION ALL
                SELECT id, started_at, seq FROM jobs INDEXED BY jobs_ahead
                WHERE status = 'queued' AND lease_until IS NOT NULL AND queue = :queue
            )
            ORDER BY started_at, seq LIMIT 20
        )
    )
