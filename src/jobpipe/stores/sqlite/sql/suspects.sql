SELECT seq FROM jobs WHERE is_suspect = 1 AND status = 'queued'
