SELECT jobs.id, name, signals.payload, signals.fingerprint, sent_at, is_used
FROM jobpipe.signals JOIN jobpipe.jobs ON seq = job WHERE jobs.id = ANY(%(ids)s::text[]) ORDER BY name
