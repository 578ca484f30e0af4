SELECT name, type, queue, payload::text, every, cron, tz, missed, anchor_at, next_at, last_at, last_job, is_paused
FROM jobpipe.schedules ORDER BY name
