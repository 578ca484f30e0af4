-- One at a time makes numbered events of what happened: so a number that can be seen has all before it.
SELECT pg_advisory_xact_lock(hashtext('jobpipe.journal'), 0), set_config('synchronous_commit', 'off', true)
