-- Few jobs have these: NULL where they are not given.
ALTER TABLE jobpipe.jobs
    ADD COLUMN expires_at double precision,
    ADD COLUMN unique_name text COLLATE "C",
    ADD COLUMN on_duplicate text COLLATE "C",
    ADD COLUMN max_wait double precision,
    ADD COLUMN tags text[] COLLATE "C";

CREATE INDEX jobs_unique ON jobpipe.jobs (unique_name) WHERE unique_name IS NOT NULL AND finished_at IS NULL;
CREATE INDEX jobs_expiring ON jobpipe.jobs (expires_at)
    WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;

-- Failed jobs may be kept for another time than others.
DROP INDEX jobpipe.jobs_finished;
CREATE INDEX jobs_finished ON jobpipe.jobs (finished_at) WHERE finished_at IS NOT NULL AND status <> 'failed';
CREATE INDEX jobs_failed_at ON jobpipe.jobs (finished_at) WHERE status = 'failed';

-- The jobs of a tag, in the order of insertion.
CREATE TABLE jobpipe.tagged (
    tag text COLLATE "C" NOT NULL,
    job bigint NOT NULL,
    PRIMARY KEY (tag, job)
);

CREATE OR REPLACE FUNCTION jobpipe.note_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, status, count, jobs, attempts)
    SELECT queue, type, status, count(*), array_agg(seq ORDER BY seq), array_agg(attempts ORDER BY seq)
    FROM new_jobs GROUP BY queue, type, status;
    IF EXISTS (SELECT 1 FROM new_jobs WHERE tags IS NOT NULL) THEN
        INSERT INTO jobpipe.tagged (tag, job) SELECT unnest(tags), seq FROM new_jobs;
    END IF;
    RETURN NULL;
END
$$;

CREATE OR REPLACE FUNCTION jobpipe.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, was, count)
    SELECT queue, type, status, count(*) FROM old_jobs GROUP BY queue, type, status;
    IF EXISTS (SELECT 1 FROM old_jobs WHERE tags IS NOT NULL) THEN
        DELETE FROM jobpipe.tagged USING (SELECT unnest(tags) COLLATE "C" AS tag, seq FROM old_jobs) AS gone
        WHERE tagged.tag = gone.tag AND tagged.job = gone.seq;
    END IF;
    RETURN NULL;
END
$$;

-- The moves of the transition table, as it is now.
ALTER TABLE jobpipe.journal DROP CONSTRAINT only_legal_moves;
ALTER TABLE jobpipe.journal ADD CONSTRAINT only_legal_moves
    CHECK (was IS NULL OR status IS NULL OR (was, status) IN (legal_moves));
