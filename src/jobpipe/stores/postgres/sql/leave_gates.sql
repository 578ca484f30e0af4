-- What was claimed ahead gives up its place, of which a deletion would tell nobody.
UPDATE jobpipe.jobs SET gate = NULL WHERE seq IN (
    SELECT seq FROM jobpipe.jobs
    WHERE id = ANY(%(ids)s::text[]) AND status = 'queued' AND gate IS NOT NULL
    ORDER BY id FOR UPDATE
)
