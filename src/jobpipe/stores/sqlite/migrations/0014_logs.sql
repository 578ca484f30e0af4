-- What runs have logged, in chunks. Why apart: most jobs are read and changed often, and their logs hardly ever.
CREATE TABLE logs (
    -- In the order in which they were stored.
    number INTEGER PRIMARY KEY,
    job INTEGER NOT NULL,
    -- Of the lease of the run, and the number of its lines before: a chunk that is told twice is stored once.
    token TEXT NOT NULL,
    start INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    -- Lines that were dropped before it.
    cut INTEGER NOT NULL,
    count INTEGER NOT NULL,
    size INTEGER NOT NULL,
    -- A JSON array of [at, level, logger, message].
    lines TEXT NOT NULL
);
CREATE UNIQUE INDEX logs_job ON logs (job, token, start);

DROP TRIGGER jobs_deleted;
CREATE TRIGGER jobs_deleted AFTER DELETE ON jobs BEGIN
    UPDATE tallies SET count = count - 1
        WHERE queue = OLD.queue AND type = OLD.type AND status = OLD.status;
    DELETE FROM tagged WHERE OLD.tags IS NOT NULL AND job = OLD.seq AND tag IN (
        SELECT value FROM json_each(CASE WHEN json_valid(OLD.tags) THEN OLD.tags ELSE '[]' END)
    );
    DELETE FROM logs WHERE job = OLD.seq;
END;
