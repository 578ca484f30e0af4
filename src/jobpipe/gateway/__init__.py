"""How a process talks to its store."""
