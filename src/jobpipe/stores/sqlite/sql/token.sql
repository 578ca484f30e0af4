SELECT token FROM jobs WHERE id = ?
