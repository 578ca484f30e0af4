UPDATE jobpipe.gates SET opens_at = 0
FROM unnest(%(types)s::text[], %(keys)s::text[]) AS told (type, key)
WHERE gates.type = told.type AND gates.key = told.key AND opens_at < %(insured_at)s
