-- The wait of that name takes the place of the others that have not timed out.
DELETE FROM suspensions WHERE job = ? AND move = 'wait' AND name <> ? AND is_timed_out = 0
