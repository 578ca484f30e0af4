-- Drops some chunks of a job, and adds the number of their lines to those that come after them.
WITH dropped AS (
    DELETE FROM jobpipe.logs WHERE job = %(job)s AND number = ANY (%(dropped)s::bigint[])
)
UPDATE jobpipe.logs SET cut = logs.cut + more.cut
FROM unnest(%(next)s::bigint[], %(cuts)s::integer[]) AS more (number, cut)
WHERE job = %(job)s AND logs.number = more.number
