DELETE FROM schedules WHERE name = ?
