-- Why no wait: who ends a job of the name has it for himself, and what waits behind that one is free in a moment.
SELECT name FROM unnest(%(names)s::text[]) AS told (name)
WHERE pg_try_advisory_xact_lock(hashtext('jobpipe.unique'), hashtext(name))
