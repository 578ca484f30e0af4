SELECT min(run_at) FROM jobs WHERE status = 'scheduled'
