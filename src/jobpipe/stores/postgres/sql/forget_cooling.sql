DELETE FROM jobpipe.cooling WHERE until <= jobpipe.now(%(now)s)
