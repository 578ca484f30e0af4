SELECT id, token FROM jobpipe.jobs WHERE id = ANY(%(ids)s::text[])
