SELECT number, id, type, queue, status, attempts FROM events WHERE number > ? ORDER BY number LIMIT ?
