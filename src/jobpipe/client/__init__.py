"""Client: the jobs of a running service, for programs that cannot or should not reach its store."""
