SELECT key FROM jobpipe.jobs WHERE id = %(id)s
