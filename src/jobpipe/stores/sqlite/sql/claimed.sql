-- What is about to be claimed, all in one value. Instants are whole microseconds, since JSON would round them. The last
-- one is 0 for a row that has a past or a trace, or values as only another program writes them.
SELECT json_group_array(json_array(
    CAST(id AS TEXT), type, CAST(queue AS TEXT), CAST(attempts AS INTEGER) + 1, CAST(max_retries AS INTEGER), CAST(priority AS INTEGER),
    CASE WHEN deadline BETWEEN 0 AND 2e11 THEN CAST(deadline AS REAL) END, CAST(round(run_at * 1e6) AS INTEGER),
    CAST(round(created_at * 1e6) AS INTEGER),
    CASE WHEN typeof(payload) = 'text' AND json_valid(payload) THEN json_array(json(payload)) ELSE json_array() END,
    seq, CAST(key AS TEXT),
    history = '[]' AND error IS NULL AND progress IS NULL AND result IS NULL
    AND started_at IS NULL AND finished_at IS NULL
    AND typeof(attempts) = 'integer' AND typeof(max_retries) = 'integer' AND typeof(priority) = 'integer'
    AND typeof(run_at) = 'real' AND run_at BETWEEN -6e10 AND 2e11
    AND typeof(created_at) = 'real' AND created_at BETWEEN -6e10 AND 2e11
    AND (deadline IS NULL OR typeof(deadline) = 'real' AND deadline BETWEEN 0 AND 2e11)
    AND typeof(queue) = 'text' AND typeof(payload) = 'text'
    AND expires_at IS NULL AND unique_name IS NULL AND tags IS NULL AND trace IS NULL
))
FROM jobs WHERE seq IN (SELECT value FROM json_each(?))
