-- What runs have logged, in chunks. Why apart: a change of a job copies its row.
CREATE TABLE jobpipe.logs (
    -- In the order in which they were stored.
    number bigint GENERATED ALWAYS AS IDENTITY,
    job bigint NOT NULL,
    -- Of the lease of the run, and the number of its lines before: a chunk that is told twice is stored once.
    token text COLLATE "C" NOT NULL,
    start integer NOT NULL,
    attempt integer NOT NULL,
    -- Lines that were dropped before it.
    cut integer NOT NULL,
    count integer NOT NULL,
    size integer NOT NULL,
    -- A JSON array of [at, level, logger, message].
    lines text NOT NULL,
    UNIQUE (job, token, start)
);

CREATE OR REPLACE FUNCTION jobpipe.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, was, count)
    SELECT queue, type, status, count(*) FROM old_jobs GROUP BY queue, type, status;
    IF EXISTS (SELECT 1 FROM old_jobs WHERE tags IS NOT NULL) THEN
        DELETE FROM jobpipe.tagged USING (SELECT unnest(tags) COLLATE "C" AS tag, seq FROM old_jobs) AS gone
        WHERE tagged.tag = gone.tag AND tagged.job = gone.seq;
    END IF;
    IF EXISTS (SELECT 1 FROM jobpipe.logs) THEN
        -- Why an array: the plan is made once, and is to go by the index however many logs there are.
        DELETE FROM jobpipe.logs WHERE job = ANY (ARRAY(SELECT seq FROM old_jobs));
    END IF;
    RETURN NULL;
END
$$;
