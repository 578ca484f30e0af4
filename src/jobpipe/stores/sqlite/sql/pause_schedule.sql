UPDATE schedules SET is_paused = 1 WHERE name = ?
