SELECT min(opens_at) FROM gates WHERE opens_at IS NOT NULL AND type IN (SELECT value FROM json_each(?))
    AND type NOT IN (SELECT type FROM cooling WHERE until > ?)
