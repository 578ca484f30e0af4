SELECT fingerprint, status FROM jobs WHERE id = ?
