-- Seconds until the next scheduled job, or the next gate of these types before which jobs are parked.
SELECT least(
    (SELECT min(run_at) FROM jobpipe.jobs WHERE status = 'scheduled'),
    (SELECT min(opens_at) FROM jobpipe.gates WHERE opens_at IS NOT NULL AND type = ANY(%(types)s::text[]))
) - jobpipe.now(%(now)s)
