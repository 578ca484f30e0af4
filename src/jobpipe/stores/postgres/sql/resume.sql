DELETE FROM jobpipe.paused WHERE queue = %(queue)s
