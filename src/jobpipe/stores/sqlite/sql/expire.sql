-- Those that never began. What is leased may have begun: its worker, or the end of its lease, will tell.
UPDATE jobs SET status = 'expired', finished_at = :now, is_parked = 0
WHERE expires_at <= :now AND started_at IS NULL AND finished_at IS NULL AND runs = 0 AND lease_until IS NULL
    AND (status = 'scheduled' OR status = 'queued')
