UPDATE jobpipe.schedules SET
    next_at = %(next_at)s,
    last_at = CASE WHEN %(job)s::text IS NULL THEN last_at ELSE %(tick_at)s END,
    last_job = coalesce(%(job)s::text, last_job)
WHERE name = %(name)s
