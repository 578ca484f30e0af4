INSERT INTO jobpipe.logs (job, token, start, attempt, cut, count, size, lines)
SELECT seq, '', chunk.start, chunk.attempt, chunk.cut, chunk.count, chunk.size, chunk.lines
FROM unnest(
    %(log_ids)s::text[], %(starts)s::integer[], %(attempts)s::integer[], %(cuts)s::integer[], %(counts)s::integer[],
    %(sizes)s::integer[], %(lines)s::text[]
) WITH ORDINALITY AS chunk (id, start, attempt, cut, count, size, lines, place) JOIN jobpipe.jobs USING (id)
ORDER BY place
