-- A job that was claimed ahead is queued and has a lease. Its is_parked is 2, so that nobody else claims it, also no
-- process of an older version.
CREATE INDEX jobs_ahead ON jobs (lease_until) WHERE status = 'queued' AND lease_until IS NOT NULL;
-- Was it lost while it was claimed ahead? Until it is settled.
ALTER TABLE jobs ADD COLUMN is_suspect INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_suspect ON jobs (seq) WHERE is_suspect = 1;

-- It begins and ends in one step, if its begin was not stored before. Why before: this is told first.
CREATE TRIGGER jobs_begun BEFORE UPDATE OF status ON jobs
WHEN OLD.status = 'queued' AND OLD.lease_until IS NOT NULL AND NEW.lease_until IS NULL AND NEW.token = OLD.token
BEGIN
    INSERT INTO tallies VALUES (NEW.queue, NEW.type, 'running', 0, 1) ON CONFLICT DO UPDATE SET total = total + 1;
    INSERT INTO events (job, status, attempts) VALUES (NEW.seq, 'running', OLD.attempts + 1);
END;
