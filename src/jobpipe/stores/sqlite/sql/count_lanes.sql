SELECT count(*) FROM (SELECT DISTINCT queue, type FROM tallies WHERE queue <> '')
