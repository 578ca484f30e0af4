INSERT INTO jobpipe.schedules AS known (
    name, type, queue, payload, every, cron, tz, missed, anchor_at, next_at, last_at, last_job, is_paused
)
VALUES (
    %(name)s, %(type)s, %(queue)s, %(payload)s::json, %(every)s, %(cron)s, %(tz)s, %(missed)s, %(anchor_at)s,
    %(next_at)s, %(last_at)s, %(last_job)s, %(is_paused)s
)
ON CONFLICT (name) DO UPDATE SET
    type = excluded.type, queue = excluded.queue, payload = excluded.payload, missed = excluded.missed,
    every = excluded.every, cron = excluded.cron, tz = excluded.tz,
    is_paused = known.is_paused OR excluded.is_paused,
    anchor_at = CASE
        WHEN (known.every, known.cron, known.tz) IS NOT DISTINCT FROM (excluded.every, excluded.cron, excluded.tz)
        THEN known.anchor_at ELSE excluded.anchor_at
    END,
    next_at = CASE
        WHEN (known.every, known.cron, known.tz) IS NOT DISTINCT FROM (excluded.every, excluded.cron, excluded.tz)
        THEN known.next_at ELSE excluded.next_at
    END
RETURNING name, type, queue, payload::text, every, cron, tz, missed, anchor_at, next_at, last_at, last_job, is_paused
