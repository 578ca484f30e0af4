"""Job types: handlers with their options, and those that are built in."""
