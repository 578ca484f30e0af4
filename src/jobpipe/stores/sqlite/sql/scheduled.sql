SELECT coalesce(sum(count), 0) FROM tallies WHERE status = 'scheduled' AND count > 0
