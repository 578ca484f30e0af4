UPDATE jobs SET lease_until = :until WHERE id = :id AND token = :token AND lease_until IS NOT NULL
RETURNING is_cancelling
