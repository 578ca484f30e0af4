"""Isolation: runs in child processes of the worker, one a slot, so that a run can be killed and costs nobody else anything."""
