UPDATE jobpipe.suspensions SET is_timed_out = true
WHERE job = %(job)s AND move = 'wait' AND name = %(name)s AND (is_timed_out OR until <= jobpipe.now(%(now)s))
