-- Those that are scheduled, and those whose wait for a signal is over: both are in jobs_due, if they are named as it does.
UPDATE jobs SET status = 'queued' WHERE (status = 'scheduled' OR status = 'waiting') AND run_at <= ?
