-- All in one value. Instants are whole microseconds, since JSON would round them; a payload that is no JSON, which
-- only somebody else can have put there, is left out.
SELECT json_group_array(json_array(
    CAST(id AS TEXT), type, CAST(queue AS TEXT), CAST(attempts AS INTEGER) + (status = 'queued'), CAST(max_retries AS INTEGER), CAST(priority AS INTEGER),
    CASE WHEN deadline BETWEEN 0 AND 2e11 THEN CAST(deadline AS REAL) END, CAST(round(run_at * 1e6) AS INTEGER),
    CAST(round(created_at * 1e6) AS INTEGER),
    CASE WHEN typeof(payload) = 'text' AND json_valid(payload) THEN json_array(json(payload)) ELSE json_array() END,
    seq, CAST(key AS TEXT), status = 'running'
))
FROM (
    SELECT jobs.* FROM jobs WHERE seq IN (SELECT value FROM json_each(:seqs)) ORDER BY priority DESC, run_at, seq
)
