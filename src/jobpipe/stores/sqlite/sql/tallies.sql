SELECT queue, type, status, count, total FROM tallies
