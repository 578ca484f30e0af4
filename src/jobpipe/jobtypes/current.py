"""The job that the calling handler runs: what it is, how long it may take, and how far it is."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import datetime
from math import isfinite
from typing import TYPE_CHECKING

from ..errors import BadInputError
from ..model.job import Progress, instant
from ..model.text import clean

if TYPE_CHECKING:
    from rate_envelope_queue import Context

    from ..model.lease import Claim

_LONGEST_NOTE = 500

_current: ContextVar[CurrentJob] = ContextVar("jobpipe.current_job")


class CurrentJob:
    """The job as its handler sees it."""

    __slots__ = ("_claim", "_report", "context")

    context: Context
    """The run's: `remaining()`, `done`, and `wait(seconds)`, by which a plain `def` learns that it is to end."""

    def __init__(self, claim: Claim, context: Context, report: Callable[[Progress], None]) -> None:
        self._claim = claim
        self._report = report
        self.context = context

    @property
    def id(self) -> str:
        return self._claim.id

    @property
    def type(self) -> str:
        return self._claim.type

    @property
    def queue(self) -> str:
        return self._claim.queue

    @property
    def attempts(self) -> int:
        """Runs begun, this one included."""
        return self._claim.attempts

    @property
    def max_retries(self) -> int:
        return self._claim.max_retries

    @property
    def priority(self) -> int:
        return self._claim.priority

    @property
    def worker(self) -> str:
        """The process that runs it."""
        return self._claim.lease.worker

    @property
    def created_at(self) -> datetime:
        return instant(self._claim.created_at)

    def progress(self, value: float, note: str | None = None) -> None:
        """Report the progress of the run, from 0 to 1, with a note; from a coroutine or a thread."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not isfinite(value)
            or not 0 <= value <= 1
        ):
            raise BadInputError("progress", f"must be a number from 0 to 1, got {value!r}")
        if note is not None and not isinstance(note, str):
            raise BadInputError("note", f"must be a string, got {note!r}")
        self._report(Progress(value=float(value), note=None if note is None else clean(note, _LONGEST_NOTE)))

    def __repr__(self) -> str:
        return f"<job {self.id!r} of type {self.type!r}, attempt {self.attempts}>"


def current_job() -> CurrentJob:
    """The job that the calling handler runs; RuntimeError outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("current_job() works only in a handler while it runs") from None


set_current = _current.set
reset_current = _current.reset
