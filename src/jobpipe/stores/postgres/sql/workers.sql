SELECT info::text, seen_at FROM jobpipe.workers WHERE known_until > jobpipe.now(%(now)s) ORDER BY name
