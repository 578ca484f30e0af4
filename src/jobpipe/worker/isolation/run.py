"""IsolatedRun: a job that is held, for what its child says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...model.job import Progress
    from ...model.logs import LogChunk
    from ..held import HeldJob
    from ..held_jobs import HeldJobs


class IsolatedRun:
    """One run."""

    __slots__ = ("_held", "_run")

    def __init__(self, held: HeldJobs, run: HeldJob) -> None:
        self._held = held
        self._run = run

    def report(self, progress: Progress) -> None:
        """How far it is."""
        self._held.report(self._run, progress)

    def add_line(self, level: str, logger: str, message: str) -> None:
        """What it has logged."""
        self._held.log_of(self._run).add(level, logger, message)

    def add_printed(self, text: str) -> None:
        """What it has printed."""
        self._held.log_of(self._run).print(text)

    def lend(self) -> None:
        """It writes in a transaction of its own."""
        self._run.lends = True

    def end(self, *, is_finishing: bool) -> None:
        """It has ended. Why told again: what it meant to write may have been refused."""
        self._run.is_finishing = is_finishing

    def lose(self) -> None:
        """The store says that its lease is lost."""
        self._held.lose(self._run)

    def finishing(self) -> tuple[LogChunk, ...]:
        """It is about to write its outcome itself; what it has logged that may not be stored yet."""
        self._run.is_finishing = True
        return self._held.unstored_logs_of(self._run)
