SELECT told.type, told.key, coalesce(gates.next_at, 0), (
    SELECT count(*) FROM jobpipe.jobs WHERE jobs.type = told.type AND jobs.gate = told.key
)
FROM unnest(%(types)s::text[], %(keys)s::text[]) AS told (type, key) LEFT JOIN jobpipe.gates USING (type, key)
