"""Completion in the shell: what bash runs, and the values it offers."""
