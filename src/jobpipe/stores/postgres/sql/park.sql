UPDATE jobpipe.jobs SET is_parked = true WHERE seq = ANY(%(seqs)s::bigint[]) AND status = 'queued'
