SELECT min(run_at) FROM jobs WHERE (status = 'scheduled' OR status = 'waiting') AND run_at < 1e12
