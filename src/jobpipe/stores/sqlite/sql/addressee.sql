-- A job that is sent a signal: the fingerprint of the one of that name, if it is there, whether the wait for it has timed
-- out, and how many others it has.
SELECT
    seq, status,
    (SELECT fingerprint FROM signals WHERE job = seq AND name = :name),
    EXISTS (
        SELECT 1 FROM suspensions
        WHERE job = seq AND move = 'wait' AND name = :name AND (is_timed_out = 1 OR until <= :now)
    ),
    (SELECT count(*) FROM signals WHERE job = seq)
FROM jobs WHERE id = :id
