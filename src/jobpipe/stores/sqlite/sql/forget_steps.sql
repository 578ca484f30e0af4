DELETE FROM steps WHERE job = ?
