"""What runs jobs in a process."""
