DELETE FROM cooling WHERE until <= ?
