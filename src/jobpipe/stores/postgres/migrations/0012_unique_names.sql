-- Of the jobs of a name that are not finished, at most one waits (has not begun) and at most one runs.
DROP INDEX jobpipe.jobs_unique;
CREATE UNIQUE INDEX jobs_unique ON jobpipe.jobs (unique_name, (started_at IS NULL))
    WHERE unique_name IS NOT NULL AND finished_at IS NULL;

-- Does it wait for the one of its name that runs? Then it is parked, too, so that nobody claims it. A claim that comes
-- upon such a job puts it there, not who inserts it: his transaction may take its time, and nobody is to wait for it.
ALTER TABLE jobpipe.jobs ADD COLUMN is_behind boolean NOT NULL DEFAULT false;
CREATE INDEX jobs_behind ON jobpipe.jobs (seq) WHERE is_behind;

CREATE FUNCTION jobpipe.let_next_in() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Who ends a job waits for a claim that is looking at its name, and else might put the next one behind it too late.
    PERFORM pg_advisory_xact_lock(hashtext('jobpipe.unique'), hashtext(OLD.unique_name));
    -- Why skip locked: who replaces a job puts it back among those that are ready, and may take his time.
    UPDATE jobpipe.jobs SET is_parked = false, is_behind = false WHERE seq = (
        SELECT seq FROM jobpipe.jobs
        WHERE unique_name = OLD.unique_name AND finished_at IS NULL AND started_at IS NULL AND is_behind
        FOR UPDATE SKIP LOCKED
    );
    PERFORM pg_notify('jobpipe.work', '');
    RETURN NULL;
END
$$;

-- Why for each row: the condition is looked at without a call, and most jobs have no such name.
CREATE TRIGGER unique_ended AFTER UPDATE ON jobpipe.jobs FOR EACH ROW
    WHEN (
        OLD.unique_name IS NOT NULL AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
        AND NEW.started_at IS NOT NULL
    )
    EXECUTE FUNCTION jobpipe.let_next_in();
CREATE TRIGGER unique_deleted AFTER DELETE ON jobpipe.jobs FOR EACH ROW
    WHEN (OLD.unique_name IS NOT NULL AND OLD.finished_at IS NULL AND OLD.started_at IS NOT NULL)
    EXECUTE FUNCTION jobpipe.let_next_in();

-- The moves of the transition table, as it is now.
ALTER TABLE jobpipe.journal DROP CONSTRAINT only_legal_moves;
ALTER TABLE jobpipe.journal ADD CONSTRAINT only_legal_moves
    CHECK (was IS NULL OR status IS NULL OR (was, status) IN (legal_moves));
