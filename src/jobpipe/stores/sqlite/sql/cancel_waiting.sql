UPDATE jobs SET status = 'cancelled', finished_at = :now WHERE id = :id
