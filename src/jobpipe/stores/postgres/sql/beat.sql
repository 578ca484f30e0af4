INSERT INTO jobpipe.workers (name, info, seen_at, known_until)
SELECT %(name)s, %(info)s::json, now, now + %(seconds)s::float8 FROM jobpipe.now(%(now)s) AS now
ON CONFLICT (name) DO UPDATE SET info = excluded.info, seen_at = excluded.seen_at, known_until = excluded.known_until
