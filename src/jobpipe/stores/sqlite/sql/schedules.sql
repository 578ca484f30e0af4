SELECT name, type, queue, payload, every, cron, tz, missed, anchor_at, next_at, last_at, last_job, is_paused
FROM schedules ORDER BY name
