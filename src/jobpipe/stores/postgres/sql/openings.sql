-- Gates before which jobs are parked, and whose time has come.
SELECT type, key FROM jobpipe.gates
WHERE opens_at <= jobpipe.now(%(now)s) AND type = ANY(%(types)s::text[])
ORDER BY opens_at LIMIT 100
