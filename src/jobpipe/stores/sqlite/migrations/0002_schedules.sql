CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    queue TEXT NOT NULL,
    payload TEXT NOT NULL,
    every REAL,
    cron TEXT,
    tz TEXT,
    missed TEXT NOT NULL,
    anchor_at REAL NOT NULL,
    -- The compare-and-set of a tick is on this column.
    next_at REAL NOT NULL,
    last_at REAL,
    last_job TEXT
) WITHOUT ROWID;
