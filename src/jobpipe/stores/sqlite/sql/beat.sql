INSERT INTO workers (name, info, seen_at, known_until) VALUES (:name, :info, :now, :until)
ON CONFLICT (name) DO UPDATE SET info = excluded.info, seen_at = excluded.seen_at, known_until = excluded.known_until
