-- Why not for ever: who keeps the lock for longer than an instant never lets go of it.
SELECT set_config('lock_timeout', '5s', false), pg_advisory_lock_shared(hashtext('jobpipe.changes'), 0)
