INSERT INTO jobpipe.steps (job, name, began_at, ended_at, result)
SELECT seq, step.name, step.began_at, step.ended_at, step.result
FROM unnest(
    %(ids)s::text[], %(names)s::text[], %(began_at)s::float8[], %(ended_at)s::float8[], %(results)s::text[]
) WITH ORDINALITY AS step (id, name, began_at, ended_at, result, place) JOIN jobpipe.jobs USING (id)
ORDER BY place
