-- The last event, and whether anything may be there to be claimed.
SELECT
    (SELECT max(number) FROM events),
    EXISTS (SELECT 1 FROM jobs WHERE status = 'queued' AND is_parked = 0) OR EXISTS (SELECT 1 FROM jobs WHERE is_parked = 1)
