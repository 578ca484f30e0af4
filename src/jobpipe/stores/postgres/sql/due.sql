-- Seconds until the next scheduled job, or the next gate of these types before which jobs are parked; not before they
-- have cooled down.
SELECT least(
    (SELECT min(run_at) FROM jobpipe.jobs WHERE (status = 'scheduled' OR status = 'waiting') AND run_at < 'infinity'),
    (
        SELECT min(greatest(first.opens_at, cooling.until))
        FROM unnest(%(types)s::text[]) AS wanted (type)
        CROSS JOIN LATERAL (
            SELECT opens_at FROM jobpipe.gates
            WHERE opens_at IS NOT NULL AND gates.type = wanted.type ORDER BY opens_at LIMIT 1
        ) AS first
        LEFT JOIN jobpipe.cooling ON cooling.type = wanted.type
    )
) - jobpipe.now(%(now)s)
