-- What was claimed ahead loses its lease. Another keeps the token of its last run, which may be settled a second time.
UPDATE jobs SET
    status = 'cancelled', finished_at = :now, gate = NULL, lease_until = NULL, is_parked = 0,
    token = CASE WHEN lease_until IS NULL THEN token END
WHERE id = :id
