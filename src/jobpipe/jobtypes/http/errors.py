"""What an `http` job fails with, and is run again for."""

from __future__ import annotations

from ...errors import Retry


class CallFailed(Retry):
    """There was no answer, or none that says it went well."""

    def __init__(self, message: str, after: float | None = None) -> None:
        super().__init__(after, message)
