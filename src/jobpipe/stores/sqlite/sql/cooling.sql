SELECT type, until FROM cooling WHERE until > ?
