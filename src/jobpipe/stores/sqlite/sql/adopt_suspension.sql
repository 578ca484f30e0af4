INSERT INTO suspensions (job, move, name, until, is_timed_out) VALUES (:job, :move, :name, :until, :is_timed_out)
