-- Why skip locked: who has it is about to use it.
DELETE FROM jobpipe.gates WHERE (type, key) IN (
    SELECT type, key FROM jobpipe.gates WHERE next_at <= jobpipe.now(%(now)s) AND opens_at IS NULL
    FOR UPDATE SKIP LOCKED
)
