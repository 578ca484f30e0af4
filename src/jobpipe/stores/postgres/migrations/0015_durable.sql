-- What the runs of a job record. Why in tables of their own: most jobs have nothing of it, and pay nothing for it.
CREATE TABLE jobpipe.steps (
    -- In the order in which they were recorded.
    number bigint GENERATED ALWAYS AS IDENTITY,
    job bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    began_at double precision NOT NULL,
    ended_at double precision NOT NULL,
    -- JSON, as the run wrote it.
    result text NOT NULL,
    PRIMARY KEY (job, name)
);

-- Sleeps, and waits for signals: the move is that with which the run was suspended.
CREATE TABLE jobpipe.suspensions (
    job bigint NOT NULL,
    move text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    until double precision NOT NULL,
    -- Of a wait: was a run told that the time was over?
    is_timed_out boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job, move, name)
);

CREATE TABLE jobpipe.signals (
    job bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    payload text NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    sent_at double precision NOT NULL,
    is_used boolean NOT NULL DEFAULT false,
    PRIMARY KEY (job, name)
);

-- A job that waits for a signal comes due like a scheduled one.
DROP INDEX jobpipe.jobs_due;
CREATE INDEX jobs_due ON jobpipe.jobs (run_at) WHERE status = 'scheduled' OR status = 'waiting';
CREATE INDEX jobs_waiting ON jobpipe.jobs (seq) WHERE status = 'waiting';
DROP INDEX jobpipe.tallies_scheduled;
CREATE INDEX tallies_scheduled ON jobpipe.tallies (queue, type) WHERE status = 'scheduled' OR status = 'waiting';

CREATE OR REPLACE FUNCTION jobpipe.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    gone bigint[];
BEGIN
    INSERT INTO jobpipe.journal (queue, type, was, count)
    SELECT queue, type, status, count(*) FROM old_jobs GROUP BY queue, type, status;
    IF EXISTS (SELECT 1 FROM old_jobs WHERE tags IS NOT NULL) THEN
        DELETE FROM jobpipe.tagged USING (SELECT unnest(tags) COLLATE "C" AS tag, seq FROM old_jobs) AS gone
        WHERE tagged.tag = gone.tag AND tagged.job = gone.seq;
    END IF;
    -- Why an array: the plans are made once, and are to go by the indexes however many rows there are.
    IF EXISTS (SELECT 1 FROM jobpipe.logs) OR EXISTS (SELECT 1 FROM jobpipe.steps)
        OR EXISTS (SELECT 1 FROM jobpipe.suspensions) OR EXISTS (SELECT 1 FROM jobpipe.signals)
    THEN
        gone := ARRAY(SELECT seq FROM old_jobs);
        DELETE FROM jobpipe.logs WHERE job = ANY (gone);
        DELETE FROM jobpipe.steps WHERE job = ANY (gone);
        DELETE FROM jobpipe.suspensions WHERE job = ANY (gone);
        DELETE FROM jobpipe.signals WHERE job = ANY (gone);
    END IF;
    RETURN NULL;
END
$$;

-- An older program takes a job that waits for one that has ended, and would delete it. Who knows better forgets the wait first.
CREATE FUNCTION jobpipe.keep_waiting() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM jobpipe.suspensions WHERE job = OLD.seq AND move = 'wait' AND NOT is_timed_out) THEN
        RAISE 'the job waits for a signal';
    END IF;
    RETURN OLD;
END
$$;
CREATE TRIGGER waiting_jobs_stay BEFORE DELETE ON jobpipe.jobs
    FOR EACH ROW WHEN (OLD.status = 'waiting') EXECUTE FUNCTION jobpipe.keep_waiting();

-- The moves of the transition table, as it is now.
ALTER TABLE jobpipe.journal DROP CONSTRAINT only_legal_moves;
ALTER TABLE jobpipe.journal ADD CONSTRAINT only_legal_moves
    CHECK (was IS NULL OR status IS NULL OR (was, status) IN (legal_moves));
