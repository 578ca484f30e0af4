SELECT EXISTS (SELECT 1 FROM schedules WHERE name = ? AND next_at = ? AND NOT is_paused)
