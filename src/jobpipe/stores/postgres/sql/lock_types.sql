-- Whoever looks at the gates of a type has them for himself until the end of his transaction.
SELECT pg_advisory_xact_lock(hashtext('jobpipe.type'), hashtext(type))
FROM (SELECT DISTINCT unnest(%(types)s::text[]) AS type ORDER BY 1) AS wanted
