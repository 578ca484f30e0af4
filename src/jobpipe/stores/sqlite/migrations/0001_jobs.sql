-- Instants are seconds since the epoch. Everything that is counted is counted by triggers, in the same transaction.

CREATE TABLE jobs (
    -- Never used twice, not even after the newest job was pruned: pages and events name jobs by it.
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    queue TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Runs ever begun: the numbers in the history. Not reset by a retry by hand, as attempts are.
    runs INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    run_at REAL NOT NULL,
    deadline REAL,
    created_at REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    -- The lease: whose it is, its token, when it runs out. A settled job keeps the token until it is
    -- claimed again, so that a settlement whose reply was lost can be told a second time.
    worker TEXT,
    token TEXT,
    lease_until REAL,
    is_cancelling INTEGER NOT NULL DEFAULT 0,
    fingerprint TEXT NOT NULL,
    error TEXT,
    progress TEXT,
    history TEXT NOT NULL DEFAULT '[]',
    payload BLOB NOT NULL,
    result BLOB
);

CREATE INDEX jobs_ready ON jobs (queue, type, priority DESC, run_at, seq) WHERE status = 'queued';
CREATE INDEX jobs_due ON jobs (run_at) WHERE status = 'scheduled';
CREATE INDEX jobs_leased ON jobs (lease_until) WHERE status = 'running';
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_failed ON jobs (seq) WHERE status = 'failed';
CREATE INDEX jobs_cancelled ON jobs (seq) WHERE status = 'cancelled';

CREATE TABLE tallies (
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    status TEXT NOT NULL,
    count INTEGER NOT NULL,
    total INTEGER NOT NULL,
    PRIMARY KEY (queue, type, status)
) WITHOUT ROWID;

-- The newest are never deleted, so that numbers only grow.
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL
);

CREATE TABLE paused (queue TEXT PRIMARY KEY) WITHOUT ROWID;

CREATE TABLE workers (
    name TEXT PRIMARY KEY,
    info BLOB NOT NULL,
    seen_at REAL NOT NULL,
    known_until REAL NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER jobs_inserted AFTER INSERT ON jobs BEGIN
    INSERT INTO tallies VALUES (NEW.queue, NEW.type, NEW.status, 1, 1)
        ON CONFLICT DO UPDATE SET count = count + 1, total = total + 1;
    INSERT INTO events (job, status, attempts) VALUES (NEW.seq, NEW.status, NEW.attempts);
END;

CREATE TRIGGER jobs_moved AFTER UPDATE OF status ON jobs WHEN OLD.status <> NEW.status BEGIN
    UPDATE tallies SET count = count - 1
        WHERE queue = OLD.queue AND type = OLD.type AND status = OLD.status;
    INSERT INTO tallies VALUES (NEW.queue, NEW.type, NEW.status, 1, 1)
        ON CONFLICT DO UPDATE SET count = count + 1, total = total + 1;
    INSERT INTO events (job, status, attempts) VALUES (NEW.seq, NEW.status, NEW.attempts);
END;

CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN
    UPDATE tallies SET count = count - 1
        WHERE queue = OLD.queue AND type = OLD.type AND status = OLD.status;
END;
