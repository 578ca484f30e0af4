UPDATE schedules SET is_paused = 0, next_at = :next_at WHERE name = :name AND is_paused AND next_at = :tick_at
