-- What a signal meets, once its job is locked: the time, the fingerprint of the one of its name, whether the wait for it has
-- timed out, and how many others there are.
SELECT
    jobpipe.now(%(now)s),
    (SELECT fingerprint FROM jobpipe.signals WHERE job = %(job)s AND name = %(name)s),
    EXISTS (
        SELECT 1 FROM jobpipe.suspensions
        WHERE job = %(job)s AND move = 'wait' AND name = %(name)s AND (is_timed_out OR until <= jobpipe.now(%(now)s))
    ),
    (SELECT count(*) FROM jobpipe.signals WHERE job = %(job)s)
