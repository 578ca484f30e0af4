"""The command line: what is heavy is imported by the command that needs it."""
