SELECT pg_advisory_lock_shared(hashtext('jobpipe.changes'), 0)
