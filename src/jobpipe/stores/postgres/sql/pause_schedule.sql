UPDATE jobpipe.schedules SET is_paused = true WHERE name = %(name)s
