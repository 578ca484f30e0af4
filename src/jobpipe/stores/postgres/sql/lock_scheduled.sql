-- Whoever heeds the bound on scheduled jobs to the letter has it for himself until the end of his transaction.
SELECT pg_advisory_xact_lock(hashtext('jobpipe.scheduled'), 0)
