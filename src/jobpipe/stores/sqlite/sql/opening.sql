SELECT key FROM gates WHERE type = ? AND opens_at <= ? ORDER BY opens_at LIMIT 100
