-- Of the jobs of a name that are not finished, at most one waits (has not begun) and at most one runs.
DROP INDEX jobs_unique;
CREATE UNIQUE INDEX jobs_unique ON jobs (unique_name, (started_at IS NULL))
    WHERE unique_name IS NOT NULL AND finished_at IS NULL;
-- A job that waits for the one of its name that runs has 3 as is_parked: nobody claims it until that one has ended.
CREATE INDEX jobs_behind ON jobs (unique_name) WHERE is_parked = 3;
