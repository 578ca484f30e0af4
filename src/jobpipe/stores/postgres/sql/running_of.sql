SELECT id FROM jobpipe.jobs WHERE unique_name = %(unique)s AND finished_at IS NULL AND started_at IS NOT NULL
