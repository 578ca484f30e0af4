-- Who looks for work, and who follows all changes, is told on a channel of its own.

-- Why only if somebody listens, who then has the lock: before a notification is sent, all commits of the server queue
-- up. Two who ask at the same moment take each other for a listener, which does no harm.
CREATE FUNCTION jobpipe.tell_changes() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock(hashtext('jobpipe.changes'), 0) THEN
        PERFORM pg_advisory_unlock(hashtext('jobpipe.changes'), 0);
    ELSE
        PERFORM pg_notify('jobpipe.changes', '');
    END IF;
END
$$;

-- Why the settings: the plan is made once, for the few rows of the first call.
CREATE OR REPLACE FUNCTION jobpipe.note_moved() RETURNS trigger LANGUAGE plpgsql
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
        -- Who looks for work is told, too: this is what is new.
        PERFORM pg_notify('jobpipe.work', '');
    END IF;
    RETURN NULL;
END
$$;
