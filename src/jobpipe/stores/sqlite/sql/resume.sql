DELETE FROM paused WHERE queue = ?
