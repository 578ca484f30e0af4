-- Instants are seconds since the epoch, by this server's clock: to_timestamp(run_at) shows one.

CREATE SEQUENCE jobpipe.jobs_seq;

CREATE TABLE jobpipe.jobs (
    -- In the order of insertion; pages and events name jobs by it.
    seq bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    -- Runs ever begun: the numbers in the history. Not reset by a retry by hand, as attempts are.
    runs integer NOT NULL DEFAULT 0,
    max_retries integer NOT NULL,
    priority integer NOT NULL,
    run_at double precision NOT NULL,
    deadline double precision,
    created_at double precision NOT NULL,
    started_at double precision,
    finished_at double precision,
    -- The lease: whose it is, its token, when it runs out. A settled job keeps the token until it is
    -- claimed again, so that a settlement whose reply was lost can be told a second time.
    worker text,
    token text COLLATE "C",
    lease_until double precision,
    is_cancelling boolean NOT NULL DEFAULT false,
    -- For the limits of its type: the key that it was given, the gate in which it holds a place while it
    -- runs ('' for that of the whole type), and whether it waits before one that is closed.
    key text COLLATE "C",
    gate text COLLATE "C",
    is_parked boolean NOT NULL DEFAULT false,
    fingerprint text COLLATE "C" NOT NULL,
    error json,
    progress json,
    -- One JSON array for each run that has ended: number, began_at, ended_at, worker, error.
    history text[] NOT NULL DEFAULT '{}',
    payload json NOT NULL,
    result json
) WITH (
    -- What is dead stands in the way of claims until it is swept out.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_analyze_scale_factor = 0.05
);

CREATE INDEX jobs_ready ON jobpipe.jobs (type, queue, priority DESC, run_at, seq)
    WHERE status = 'queued' AND NOT is_parked;
CREATE INDEX jobs_parked ON jobpipe.jobs (type, key, queue, priority DESC, run_at, seq)
    WHERE status = 'queued' AND is_parked;
CREATE INDEX jobs_holding ON jobpipe.jobs (type, gate) WHERE gate IS NOT NULL;
CREATE INDEX jobs_due ON jobpipe.jobs (run_at) WHERE status = 'scheduled';
CREATE INDEX jobs_leased ON jobpipe.jobs (lease_until) WHERE status = 'running';
CREATE INDEX jobs_finished ON jobpipe.jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_failed ON jobpipe.jobs (seq) WHERE status = 'failed';
CREATE INDEX jobs_cancelled ON jobpipe.jobs (seq) WHERE status = 'cancelled';

CREATE TABLE jobpipe.gates (
    type text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    -- When the next start would be evenly paced.
    next_at double precision NOT NULL DEFAULT 0,
    -- When to look at those that are parked before it; NULL if there are none.
    opens_at double precision,
    PRIMARY KEY (type, key)
) WITH (fillfactor = 50);
CREATE INDEX gates_opening ON jobpipe.gates (type, opens_at) WHERE opens_at IS NOT NULL;

CREATE TABLE jobpipe.cooling (
    type text COLLATE "C" PRIMARY KEY,
    until double precision NOT NULL
);

-- What happened, one row for each lane and kind of change in a statement. Rows are only added by those who
-- change jobs, so that none of them waits for another; `fold` makes tallies and numbered events of them.
CREATE TABLE jobpipe.journal (
    entry bigint GENERATED ALWAYS AS IDENTITY,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    was text COLLATE "C",
    status text COLLATE "C",
    count bigint NOT NULL,
    jobs bigint[] NOT NULL DEFAULT '{}',
    attempts integer[] NOT NULL DEFAULT '{}',
    CONSTRAINT only_legal_moves CHECK (was IS NULL OR status IS NULL OR (was, status) IN (legal_moves))
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000);

CREATE TABLE jobpipe.tallies (
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    total bigint NOT NULL,
    PRIMARY KEY (queue, type, status)
) WITH (fillfactor = 50);

CREATE VIEW jobpipe.counted AS
SELECT queue, type, status, sum(count)::bigint AS count, sum(total)::bigint AS total
FROM (
    SELECT queue, type, status, count, total FROM jobpipe.tallies
    UNION ALL
    SELECT queue, type, was, -count, 0 FROM jobpipe.journal WHERE was IS NOT NULL
    UNION ALL
    SELECT queue, type, status, count, count FROM jobpipe.journal WHERE status IS NOT NULL
) AS every
GROUP BY queue, type, status;

-- A row is some events in a row: `number` is that of the last. The newest are never deleted, so that numbers only grow.
CREATE TABLE jobpipe.events (
    number bigint PRIMARY KEY,
    status text COLLATE "C" NOT NULL,
    jobs bigint[] NOT NULL,
    attempts integer[] NOT NULL
);

CREATE TABLE jobpipe.paused (queue text COLLATE "C" PRIMARY KEY);

CREATE TABLE jobpipe.workers (
    name text COLLATE "C" PRIMARY KEY,
    info json NOT NULL,
    seen_at double precision NOT NULL,
    known_until double precision NOT NULL
);

CREATE TABLE jobpipe.schedules (
    name text COLLATE "C" PRIMARY KEY,
    type text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    payload json NOT NULL,
    every double precision,
    cron text,
    tz text,
    missed text NOT NULL,
    anchor_at double precision NOT NULL,
    -- The compare-and-set of a tick is on this column.
    next_at double precision NOT NULL,
    last_at double precision,
    last_job text
);

-- Tells this store from every other, also on another server.
CREATE TABLE jobpipe.identity (store uuid NOT NULL);
INSERT INTO jobpipe.identity VALUES (gen_random_uuid());

-- What time it is: that of the server, unless a test tells another.
CREATE FUNCTION jobpipe.now(told double precision) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT coalesce(told, extract(epoch FROM statement_timestamp())::double precision)
$$;

CREATE FUNCTION jobpipe.note_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, status, count, jobs, attempts)
    SELECT queue, type, status, count(*), array_agg(seq ORDER BY seq), array_agg(attempts ORDER BY seq)
    FROM new_jobs GROUP BY queue, type, status;
    RETURN NULL;
END
$$;

-- Why the settings: the plan is made once, for the few rows of the first call.
CREATE FUNCTION jobpipe.note_moved() RETURNS trigger LANGUAGE plpgsql
    SET enable_nestloop = off SET enable_mergejoin = off SET enable_hashjoin = on AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, was, status, count, jobs, attempts)
    SELECT
        new_jobs.queue, new_jobs.type, old_jobs.status, new_jobs.status, count(*),
        array_agg(seq ORDER BY seq), array_agg(new_jobs.attempts ORDER BY seq)
    FROM new_jobs JOIN old_jobs USING (seq)
    WHERE new_jobs.status <> old_jobs.status
    GROUP BY new_jobs.queue, new_jobs.type, old_jobs.status, new_jobs.status;
    -- Why two looks: most changes free no place, and are not to pay for the join, let alone to wait for anybody.
    IF EXISTS (SELECT 1 FROM old_jobs WHERE gate IS NOT NULL) AND EXISTS (SELECT 1 FROM new_jobs WHERE gate IS NULL)
    THEN
        -- Who leaves a gate waits for a claim that is looking at it, which else might park a job before the place
        -- that has just become free.
        PERFORM pg_advisory_xact_lock_shared(hashtext('jobpipe.type'), hashtext(type))
        FROM (
            SELECT DISTINCT old_jobs.type FROM old_jobs JOIN new_jobs USING (seq)
            WHERE old_jobs.gate <> '' AND new_jobs.gate IS NULL ORDER BY 1
        ) AS left_types;
        UPDATE jobpipe.gates SET opens_at = 0
        FROM (
            SELECT type, key FROM jobpipe.gates
            WHERE opens_at IS NOT NULL AND (type, key) IN (
                SELECT old_jobs.type, old_jobs.gate FROM old_jobs JOIN new_jobs USING (seq)
                WHERE old_jobs.gate IS NOT NULL AND new_jobs.gate IS NULL
            )
            ORDER BY type, key FOR UPDATE
        ) AS freed
        WHERE gates.type = freed.type AND gates.key = freed.key;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION jobpipe.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, was, count)
    SELECT queue, type, status, count(*) FROM old_jobs GROUP BY queue, type, status;
    RETURN NULL;
END
$$;

CREATE TRIGGER note_inserted AFTER INSERT ON jobpipe.jobs
    REFERENCING NEW TABLE AS new_jobs FOR EACH STATEMENT EXECUTE FUNCTION jobpipe.note_inserted();
CREATE TRIGGER note_moved AFTER UPDATE ON jobpipe.jobs
    REFERENCING OLD TABLE AS old_jobs NEW TABLE AS new_jobs
    FOR EACH STATEMENT EXECUTE FUNCTION jobpipe.note_moved();
CREATE TRIGGER note_deleted AFTER DELETE ON jobpipe.jobs
    REFERENCING OLD TABLE AS old_jobs FOR EACH STATEMENT EXECUTE FUNCTION jobpipe.note_deleted();
