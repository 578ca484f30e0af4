UPDATE suspensions SET is_timed_out = 1
WHERE job = :job AND move = 'wait' AND name = :name AND (is_timed_out = 1 OR until <= :now)
