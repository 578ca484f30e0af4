"""Names: which job of each unique name waits, and which runs. The caller holds the store's lock."""

from __future__ import annotations

from ...model.job import FINISHED
from ...model.unique import Named, Waiting
from .record import Record


class Holders:
    """The jobs of one name that are not finished."""

    __slots__ = ("running", "waiting")

    def __init__(self) -> None:
        self.waiting: Record | None = None
        self.running: Record | None = None


class Names:
    """All names of jobs that are not finished."""

    def __init__(self) -> None:
        self._holders: dict[str, Holders] = {}

    def __getitem__(self, name: str) -> Holders:
        return self._holders.get(name) or Holders()

    def look(self, name: str) -> Named:
        """As the rule wants to know it."""
        waiting, running = self[name].waiting, self[name].running
        return Named(
            None if waiting is None else Waiting(waiting.new.id, waiting.new.type, waiting.new.queue),
            None if running is None else running.new.id,
        )

    def enter(self, record: Record) -> None:
        """It has a status from now on."""
        name = record.new.unique
        if name is not None and record.status not in FINISHED:
            holders = self._holders.setdefault(name, Holders())
            if record.has_begun:
                holders.running = record
            else:
                holders.waiting = record

    def leave(self, record: Record) -> None:
        """It has its status no more."""
        holders = self._holders.get(record.new.unique or "")
        if holders is not None:
            if holders.waiting is record:
                holders.waiting = None
            if holders.running is record:
                holders.running = None
            if holders.waiting is None and holders.running is None:
                del self._holders[record.new.unique or ""]
