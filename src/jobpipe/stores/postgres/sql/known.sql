SELECT id, fingerprint, status FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[])
