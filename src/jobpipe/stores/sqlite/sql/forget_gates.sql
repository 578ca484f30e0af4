DELETE FROM gates WHERE next_at <= ? AND opens_at IS NULL
