DELETE FROM tallies WHERE queue = '' AND type NOT IN (SELECT type FROM tallies WHERE queue <> '')
