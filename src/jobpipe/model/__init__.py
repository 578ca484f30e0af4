"""The values of the service and its rules, without I/O."""
