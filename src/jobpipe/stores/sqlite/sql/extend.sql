UPDATE jobs SET lease_until = :until WHERE id = :id AND token = :token AND status = 'running'
RETURNING is_cancelling
