"""Bridges to other libraries, each imported by its own path and installed as an extra of the same name."""
