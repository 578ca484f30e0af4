"""What an `http` job fails with, and is run again for."""

from __future__ import annotations


class CallFailed(Exception):
    """There was no answer, or none that says it went well."""
