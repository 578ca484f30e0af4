DELETE FROM workers WHERE name = :name OR known_until <= :now
