-- The waits; from the start, the sleeps, too.
DELETE FROM suspensions WHERE job = ? AND (move = 'wait' OR ?)
