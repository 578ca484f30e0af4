-- A job that was claimed ahead is queued and has a lease. Its is_parked is true, so that it is not among those that are
-- ready; also not for programs that know no such jobs.

-- Was it lost while it was claimed ahead? Until it is settled.
ALTER TABLE jobpipe.jobs ADD COLUMN is_suspect boolean NOT NULL DEFAULT false;

DROP INDEX jobpipe.jobs_leased;
CREATE INDEX jobs_leased ON jobpipe.jobs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX jobs_running ON jobpipe.jobs (seq) WHERE status = 'running';
DROP INDEX jobpipe.jobs_parked;
CREATE INDEX jobs_parked ON jobpipe.jobs (type, key, queue, priority DESC, run_at, seq)
    WHERE status = 'queued' AND is_parked AND lease_until IS NULL;

-- Why the settings: the plan is made once, for the few rows of the first call.
CREATE OR REPLACE FUNCTION jobpipe.note_moved() RETURNS trigger LANGUAGE plpgsql
    SET enable_nestloop = off SET enable_mergejoin = off SET enable_hashjoin = on AS $$
BEGIN
    INSERT INTO jobpipe.journal (queue, type, was, status, count, jobs, attempts)
    SELECT queue, type, step.was, step.status, count, jobs, step.attempts
    FROM (
        SELECT
            new_jobs.queue, new_jobs.type, old_jobs.status AS was, new_jobs.status,
            -- Settled, though only claimed ahead until then: the lease has ended, and its token is kept.
            old_jobs.status = 'queued' AND old_jobs.lease_until IS NOT NULL
                AND new_jobs.lease_until IS NULL AND new_jobs.token IS NOT NULL AS is_whole_run,
            count(*), array_agg(seq ORDER BY seq) AS jobs,
            array_agg(new_jobs.attempts ORDER BY seq) AS attempts,
            array_agg(old_jobs.attempts + 1 ORDER BY seq) AS begun
        FROM new_jobs JOIN old_jobs USING (seq)
        WHERE new_jobs.status <> old_jobs.status
        GROUP BY new_jobs.queue, new_jobs.type, old_jobs.status, new_jobs.status, is_whole_run
    ) AS moved
    CROSS JOIN LATERAL (
        SELECT moved.was, 'running' AS status, moved.begun AS attempts WHERE is_whole_run
        UNION ALL
        SELECT CASE WHEN is_whole_run THEN 'running' ELSE moved.was END, moved.status, moved.attempts
    ) AS step;
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
        -- Who looks for work is told, too: this is what is new.
        PERFORM pg_notify('jobpipe.work', '');
    END IF;
    RETURN NULL;
END
$$;
