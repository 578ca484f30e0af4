SELECT key FROM jobs WHERE id = ?
