-- A part of write_logs.sql and settle_logged.sql, after `held`: the jobs whose run logged the chunks.
written AS (
    INSERT INTO jobpipe.logs (job, token, start, attempt, cut, count, size, lines)
    SELECT seq, token, chunk.start, number, chunk.cut, chunk.count, chunk.size, chunk.lines
    FROM unnest(
        %(log_ids)s::text[], %(log_tokens)s::text[], %(starts)s::integer[], %(cuts)s::integer[], %(counts)s::integer[],
        %(sizes)s::integer[], %(lines)s::text[]
    ) WITH ORDINALITY AS chunk (id, token, start, cut, count, size, lines, place) JOIN held USING (id, token)
    ORDER BY place
    ON CONFLICT DO NOTHING
    RETURNING job, size
), too_long AS (
    -- Of what was stored before, and now: this statement does not see what it writes itself.
    SELECT array_agg(job) AS jobs FROM (SELECT job, sum(size) AS size FROM written GROUP BY job) AS added
    WHERE size + coalesce((SELECT sum(size) FROM jobpipe.logs WHERE logs.job = added.job), 0) > %(most)s
)
