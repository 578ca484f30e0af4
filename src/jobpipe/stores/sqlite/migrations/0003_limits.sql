-- The key of a job, for limits that hold for each key by itself.
ALTER TABLE jobs ADD COLUMN key TEXT;
-- The key of the gate in which it holds a place while it runs; empty for the gate of the whole type.
ALTER TABLE jobs ADD COLUMN gate TEXT;
-- Queued, but its gate was closed: not among those that are ready, until the gate opens.
ALTER TABLE jobs ADD COLUMN is_parked INTEGER NOT NULL DEFAULT 0;

DROP INDEX jobs_ready;
CREATE INDEX jobs_ready ON jobs (queue, type, priority DESC, run_at, seq) WHERE status = 'queued' AND is_parked = 0;
CREATE INDEX jobs_parked ON jobs (type, key, queue, priority DESC, run_at, seq) WHERE is_parked = 1;
CREATE INDEX jobs_holding ON jobs (type, gate) WHERE gate IS NOT NULL;

CREATE TABLE gates (
    type TEXT NOT NULL,
    key TEXT NOT NULL,
    -- When the next start would be evenly paced.
    next_at REAL NOT NULL DEFAULT 0,
    -- When to look at those that are parked before it; NULL if there are none.
    opens_at REAL,
    PRIMARY KEY (type, key)
) WITHOUT ROWID;
CREATE INDEX gates_opening ON gates (type, opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE cooling (
    type TEXT PRIMARY KEY,
    until REAL NOT NULL
) WITHOUT ROWID;

CREATE TRIGGER jobs_left_gate AFTER UPDATE OF gate ON jobs WHEN OLD.gate IS NOT NULL AND NEW.gate IS NULL BEGIN
    UPDATE gates SET opens_at = 0 WHERE type = OLD.type AND key = OLD.gate AND opens_at IS NOT NULL;
END;

CREATE TRIGGER jobs_left_parking AFTER UPDATE OF status ON jobs WHEN OLD.is_parked = 1 AND NEW.status <> 'queued' BEGIN
    UPDATE jobs SET is_parked = 0 WHERE seq = OLD.seq;
END;
