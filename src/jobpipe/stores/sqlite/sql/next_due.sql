SELECT min(run_at) FROM jobs WHERE status = 'scheduled' AND run_at < 1e12
