-- A job that was claimed ahead is queued and has a lease. Its is_parked is 2, so that nobody else claims it, also no
-- process of an older version.
CREATE INDEX jobs_ahead ON jobs (lease_until) WHERE status = 'queued' AND lease_until IS NOT NULL;
-- Was it lost while it was claimed ahead? Until it is settled.
ALTER TABLE jobs ADD COLUMN is_suspect INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_suspect ON jobs (seq) WHERE is_suspect = 1;

-- One that was claimed ahead begins and ends in one step, if its begin was not stored before: both are told, in their
-- order. It keeps the token of its lease, which one that is cancelled instead does not.
DROP TRIGGER jobs_moved;
CREATE TRIGGER jobs_moved AFTER UPDATE OF status ON jobs WHEN OLD.status <> NEW.status BEGIN
    INSERT INTO tallies SELECT NEW.queue, NEW.type, 'running', 0, 1
        WHERE OLD.status = 'queued' AND OLD.lease_until IS NOT NULL AND NEW.lease_until IS NULL AND NEW.token = OLD.token
        ON CONFLICT DO UPDATE SET total = total + 1;
    INSERT INTO events (job, status, attempts) SELECT NEW.seq, 'running', OLD.attempts + 1
        WHERE OLD.status = 'queued' AND OLD.lease_until IS NOT NULL AND NEW.lease_until IS NULL AND NEW.token = OLD.token;
    UPDATE tallies SET count = count - 1
        WHERE queue = OLD.queue AND type = OLD.type AND status = OLD.status;
    INSERT INTO tallies VALUES (NEW.queue, NEW.type, NEW.status, 1, 1)
        ON CONFLICT DO UPDATE SET count = count + 1, total = total + 1;
    INSERT INTO events (job, status, attempts) VALUES (NEW.seq, NEW.status, NEW.attempts);
END;
