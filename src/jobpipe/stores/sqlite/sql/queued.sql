SELECT coalesce(sum(count), 0) FROM tallies WHERE queue = ? AND status = 'queued'
