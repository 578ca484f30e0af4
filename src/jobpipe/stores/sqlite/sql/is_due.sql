SELECT EXISTS (SELECT 1 FROM jobs WHERE (status = 'scheduled' OR status = 'waiting') AND run_at <= :now) OR EXISTS (
    SELECT 1 FROM jobs
    WHERE expires_at <= :now AND started_at IS NULL AND finished_at IS NULL AND runs = 0 AND lease_until IS NULL
)
