SELECT attempt, size, number, cut + count FROM logs WHERE job = ? ORDER BY number
