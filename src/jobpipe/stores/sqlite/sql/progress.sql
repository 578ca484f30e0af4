UPDATE jobs SET progress = :progress WHERE id = :id AND token = :token AND status = 'running'
