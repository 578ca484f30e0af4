SELECT seq FROM jobs WHERE id = ?
