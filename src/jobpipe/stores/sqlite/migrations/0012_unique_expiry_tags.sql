-- Few jobs have these: NULL where they are not given.
ALTER TABLE jobs ADD COLUMN expires_at REAL;
ALTER TABLE jobs ADD COLUMN unique_name TEXT;
ALTER TABLE jobs ADD COLUMN on_duplicate TEXT;
ALTER TABLE jobs ADD COLUMN max_wait REAL;
-- A JSON array of texts.
ALTER TABLE jobs ADD COLUMN tags TEXT;

CREATE INDEX jobs_unique ON jobs (unique_name) WHERE unique_name IS NOT NULL AND finished_at IS NULL;
CREATE INDEX jobs_expiring ON jobs (expires_at)
    WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL;

-- Failed jobs may be kept for another time than others.
DROP INDEX jobs_finished;
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL AND status <> 'failed';
CREATE INDEX jobs_failed_at ON jobs (finished_at) WHERE status = 'failed';

-- The jobs of a tag, in the order of insertion.
CREATE TABLE tagged (
    tag TEXT NOT NULL,
    job INTEGER NOT NULL,
    PRIMARY KEY (tag, job)
) WITHOUT ROWID;

-- Why in the triggers that are there: another one costs every job, and one that has no tags passes these lines over.
DROP TRIGGER jobs_inserted;
CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs BEGIN
    INSERT INTO tallies VALUES (NEW.queue, NEW.type, NEW.status, 1, 1)
        ON CONFLICT DO UPDATE SET count = count + 1, total = total + 1;
    INSERT INTO events (job, status, attempts) VALUES (NEW.seq, NEW.status, NEW.attempts);
    INSERT INTO tagged (tag, job) SELECT value, NEW.seq FROM json_each(NEW.tags) WHERE NEW.tags IS NOT NULL;
END;

DROP TRIGGER jobs_deleted;
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN
    UPDATE tallies SET count = count - 1
        WHERE queue = OLD.queue AND type = OLD.type AND status = OLD.status;
    DELETE FROM tagged WHERE OLD.tags IS NOT NULL AND job = OLD.seq AND tag IN (
        SELECT value FROM json_each(CASE WHEN json_valid(OLD.tags) THEN OLD.tags ELSE '[]' END)
    );
END;
