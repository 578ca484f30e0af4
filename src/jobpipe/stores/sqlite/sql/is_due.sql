SELECT EXISTS (SELECT 1 FROM jobs WHERE status = 'scheduled' AND run_at <= ?)
