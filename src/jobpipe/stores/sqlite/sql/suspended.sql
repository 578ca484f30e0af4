UPDATE jobs SET run_at = ? WHERE seq = ?
