SELECT seq FROM jobs WHERE id = ? AND token = ? AND lease_until IS NOT NULL
