UPDATE schedules SET
    next_at = :next_at,
    last_at = CASE WHEN :job IS NULL THEN last_at ELSE :tick_at END,
    last_job = coalesce(:job, last_job)
WHERE name = :name
