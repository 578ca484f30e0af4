SELECT named.type, named.key, CASE WHEN gates.next_at > :now THEN gates.next_at ELSE 0 END,
    (SELECT count(*) FROM jobs WHERE jobs.type = named.type AND jobs.gate = named.key),
    (
        SELECT json_group_array(id) FROM (
            SELECT id FROM jobs WHERE jobs.type = named.type AND jobs.gate = named.key ORDER BY started_at, seq LIMIT 20
        )
    )
FROM (
    SELECT type, key FROM gates WHERE next_at > :now AND type <> ''
    UNION
    SELECT type, gate FROM jobs WHERE gate IS NOT NULL
) AS named
LEFT JOIN gates ON gates.type = named.type AND gates.key = named.key
WHERE named.type = coalesce(:type, named.type) AND named.key = coalesce(:key, named.key)
ORDER BY named.type, named.key
LIMIT :limit
