-- What the runs of a job record. Why in tables of their own: most jobs have nothing of it, and pay nothing for it.
CREATE TABLE steps (
    -- In the order in which they were recorded.
    number INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    began_at REAL NOT NULL,
    ended_at REAL NOT NULL,
    result TEXT NOT NULL
);
CREATE UNIQUE INDEX steps_name ON steps (job, name);

-- Sleeps, and waits for signals: the move is that with which the run was suspended.
CREATE TABLE suspensions (
    job INTEGER NOT NULL,
    move TEXT NOT NULL,
    name TEXT NOT NULL,
    until REAL NOT NULL,
    -- Of a wait: was a run told that the time was over?
    is_timed_out INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, move, name)
) WITHOUT ROWID;

CREATE TABLE signals (
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    payload TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sent_at REAL NOT NULL,
    is_used INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, name)
);

-- A job that waits for a signal comes due like a scheduled one. Why OR, not IN: only so are these the indexes of statements
-- that ask for the scheduled alone, also of those of an older program.
DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (run_at) WHERE status = 'scheduled' OR status = 'waiting';
CREATE INDEX jobs_waiting ON jobs (seq) WHERE status = 'waiting';
DROP INDEX tallies_scheduled;
CREATE INDEX tallies_scheduled ON tallies (queue, type) WHERE status = 'scheduled' OR status = 'waiting';

DROP TRIGGER jobs_deleted;
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN
    UPDATE tallies SET count = count - 1
        WHERE queue = OLD.queue AND type = OLD.type AND status = OLD.status;
    DELETE FROM tagged WHERE OLD.tags IS NOT NULL AND job = OLD.seq AND tag IN (
        SELECT value FROM json_each(CASE WHEN json_valid(OLD.tags) THEN OLD.tags ELSE '[]' END)
    );
    DELETE FROM logs WHERE job = OLD.seq;
    DELETE FROM steps WHERE job = OLD.seq;
    DELETE FROM suspensions WHERE job = OLD.seq;
    DELETE FROM signals WHERE job = OLD.seq;
END;

-- An older program takes a job that waits for one that has ended, and would delete it. Who knows better forgets the wait first.
CREATE TRIGGER waiting_jobs_stay BEFORE DELETE ON jobs
WHEN OLD.status = 'waiting' AND EXISTS (SELECT 1 FROM suspensions WHERE job = OLD.seq AND move = 'wait' AND is_timed_out = 0)
BEGIN SELECT RAISE(ABORT, 'the job waits for a signal'); END;
