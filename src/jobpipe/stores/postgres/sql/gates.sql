SELECT named.type, named.key, CASE WHEN gates.next_at > now THEN gates.next_at ELSE 0 END,
    (SELECT count(*) FROM jobpipe.jobs WHERE jobs.type = named.type AND jobs.gate = named.key),
    ARRAY(
        SELECT id FROM jobpipe.jobs WHERE jobs.type = named.type AND jobs.gate = named.key
        ORDER BY started_at, seq LIMIT 20
    )
FROM (
    SELECT type, key FROM jobpipe.gates WHERE next_at > jobpipe.now(%(now)s) AND type <> ''
    UNION
    SELECT type, gate FROM jobpipe.jobs WHERE gate IS NOT NULL
) AS named
LEFT JOIN jobpipe.gates USING (type, key)
CROSS JOIN jobpipe.now(%(now)s) AS now
WHERE named.type = coalesce(%(type)s, named.type) AND named.key = coalesce(%(key)s, named.key)
ORDER BY named.type, named.key
LIMIT %(limit)s
