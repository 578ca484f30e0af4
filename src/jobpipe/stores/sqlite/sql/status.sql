SELECT status FROM jobs WHERE id = ?
