DELETE FROM signals WHERE job = ? AND is_used = 1
