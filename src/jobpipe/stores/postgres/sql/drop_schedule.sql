DELETE FROM jobpipe.schedules WHERE name = %(name)s
