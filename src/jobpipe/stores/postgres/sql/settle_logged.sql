-- Why one statement: what a run logged is stored with its outcome, or not at all.
WITH held AS (
    settle_statement
    RETURNING jobs.seq, told.id, told.token, jobs.runs + told.given_back AS number
),
add_chunks
SELECT (SELECT count(*) FROM held), (SELECT jobs FROM too_long)
