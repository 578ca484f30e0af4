UPDATE jobpipe.schedules SET is_paused = false, next_at = %(next_at)s
WHERE name = %(name)s AND is_paused AND next_at = %(tick_at)s
