-- With those that wait for a signal.
SELECT coalesce(sum(count), 0) FROM tallies WHERE (status = 'scheduled' OR status = 'waiting') AND count > 0
