SELECT EXISTS (SELECT 1 FROM tallies WHERE queue = ? AND type = ?)
