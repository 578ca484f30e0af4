SELECT 1 FROM jobpipe.schedules
WHERE name = %(name)s AND next_at = %(tick_at)s AND NOT is_paused FOR UPDATE
