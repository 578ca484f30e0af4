INSERT INTO schedules (name, type, queue, payload, every, cron, tz, missed, anchor_at, next_at, last_at, last_job, is_paused)
VALUES (:name, :type, :queue, :payload, :every, :cron, :tz, :missed, :anchor_at, :next_at, :last_at, :last_job, :is_paused)
ON CONFLICT (name) DO UPDATE SET
    type = excluded.type, queue = excluded.queue, payload = excluded.payload, missed = excluded.missed,
    every = excluded.every, cron = excluded.cron, tz = excluded.tz,
    is_paused = is_paused OR excluded.is_paused,
    anchor_at = CASE WHEN (every, cron, tz) IS (excluded.every, excluded.cron, excluded.tz)
        THEN anchor_at ELSE excluded.anchor_at END,
    next_at = CASE WHEN (every, cron, tz) IS (excluded.every, excluded.cron, excluded.tz)
        THEN next_at ELSE excluded.next_at END
