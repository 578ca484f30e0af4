-- Of those that are about to be claimed, all that somebody else may have changed: most have no past, and values as we write them.
SELECT seq, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, started_at,
    finished_at, error, progress, payload, result, history
FROM jobs WHERE seq IN (SELECT value FROM json_each(?)) AND NOT (
    history = '[]' AND error IS NULL AND progress IS NULL AND result IS NULL
    AND started_at IS NULL AND finished_at IS NULL
    AND typeof(attempts) = 'integer' AND typeof(max_retries) = 'integer' AND typeof(priority) = 'integer'
    AND typeof(run_at) = 'real' AND run_at BETWEEN -6e10 AND 2e11
    AND typeof(created_at) = 'real' AND created_at BETWEEN -6e10 AND 2e11
    AND (deadline IS NULL OR typeof(deadline) = 'real' AND deadline BETWEEN 0 AND 2e11)
    AND typeof(queue) = 'text' AND typeof(payload) = 'text' AND json_valid(payload)
)
