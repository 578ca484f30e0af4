-- Why skip locked: who has one may wait for the gates in turn. Why a CASE: see let_out.sql.
UPDATE jobpipe.jobs SET is_parked = true
WHERE seq = ANY(ARRAY(
    SELECT seq FROM jobpipe.jobs
    WHERE CASE WHEN status = 'queued' THEN NOT is_parked END AND seq = ANY(%(seqs)s::bigint[])
    FOR UPDATE SKIP LOCKED
))
RETURNING seq
