-- Once they are settled: each waits until its suspension is over, or not at all if the signal is there.
UPDATE jobpipe.jobs SET
    status = CASE WHEN is_signalled THEN 'queued' ELSE jobs.status END,
    run_at = CASE WHEN is_signalled THEN jobpipe.now(%(now)s) ELSE until END
FROM (
    SELECT seq, until, move = 'wait' AND NOT is_timed_out AND EXISTS (
        SELECT 1 FROM jobpipe.signals WHERE signals.job = seq AND signals.name = suspensions.name
    ) AS is_signalled
    FROM unnest(%(ids)s::text[], %(tokens)s::text[], %(moves)s::text[], %(names)s::text[]) AS told (id, token, move, name)
    JOIN jobpipe.jobs USING (id, token)
    JOIN jobpipe.suspensions USING (move, name)
    WHERE suspensions.job = seq AND status IN ('scheduled', 'waiting')
) AS suspended
WHERE jobs.seq = suspended.seq
