DELETE FROM jobpipe.workers WHERE name = %(name)s OR known_until <= jobpipe.now(%(now)s)
