SELECT info, seen_at FROM workers WHERE known_until > ? ORDER BY name
