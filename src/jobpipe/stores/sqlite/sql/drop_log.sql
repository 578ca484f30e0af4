DELETE FROM logs WHERE number = ?
