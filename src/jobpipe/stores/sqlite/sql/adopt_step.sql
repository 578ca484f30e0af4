INSERT INTO steps (job, name, began_at, ended_at, result) VALUES (:job, :name, :began_at, :ended_at, :result)
