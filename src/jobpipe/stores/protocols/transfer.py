"""TransferStore: waiting jobs move from one store to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...model.newjob import ExportedJob


class TransferStore(Protocol):
    """What moves jobs to another store."""

    def export(self, limit: int, after: int = 0) -> list[ExportedJob]:
        """The first jobs that wait (scheduled or queued) after that number, in the order of insertion."""

    def adopt(self, exported: Sequence[ExportedJob]) -> int:
        """Insert jobs that come from another store as they were there, all or none; how many were new.

        A job of the same id and fingerprint is there already; another of that id is a JobConflictError.
        """

    def discard(self, ids: Sequence[str]) -> int:
        """Delete those of the jobs that wait; returns their number."""
