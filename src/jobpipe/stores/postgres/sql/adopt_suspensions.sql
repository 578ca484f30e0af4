INSERT INTO jobpipe.suspensions (job, move, name, until, is_timed_out)
SELECT seq, each.move, each.name, each.until, each.is_timed_out
FROM unnest(
    %(ids)s::text[], %(moves)s::text[], %(names)s::text[], %(until)s::float8[], %(are_timed_out)s::boolean[]
) AS each (id, move, name, until, is_timed_out) JOIN jobpipe.jobs USING (id)
