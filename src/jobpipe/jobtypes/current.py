"""The job that the calling handler runs: what it is, how long it may take, and how far it is."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from inspect import isawaitable
from math import isfinite
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from ..errors import BadInputError, seconds_of
from ..gateway.sync import sync
from ..model.job import Progress, instant
from ..model.request import LONGEST_DELAY
from ..model.text import clean
from ..stores.guests import current_handler

if TYPE_CHECKING:
    from rate_envelope_queue import Context

    from ..model.lease import Claim
    from .durable import DurableRun

P = ParamSpec("P")
T = TypeVar("T")
_LONGEST_NOTE = 500


class LogSink(Protocol):
    """Keeps what a run logs."""

    def add(self, level: str, logger: str, message: str) -> None: ...

    def print(self, text: str) -> None: ...


_current: ContextVar[CurrentJob] = current_handler


class CurrentJob:
    """The job as its handler sees it."""

    __slots__ = ("_claim", "_durable", "_log_of_run", "_report", "connections", "context")

    context: Context
    """The run's: `remaining()`, `done`, and `wait(seconds)`, by which a plain `def` learns that it is to end."""
    connections: Sequence[Any]
    """Those that it gave to `step` and `finish`; whether their transactions are open is for the store to see."""

    def __init__(
        self,
        claim: Claim,
        context: Context,
        report: Callable[[Progress], None],
        log_of_run: Callable[[], LogSink] | None = None,
        durable: Callable[[], DurableRun] | None = None,
    ) -> None:
        self._claim = claim
        self._report = report
        self.context = context
        self.connections = ()
        self._log_of_run = log_of_run  # made with the first line; None if what it logs is not kept
        self._durable = durable  # made with the first step; None where a test has called the handler itself

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
        """Runs begun, this one included; one that slept or waited does not count."""
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

    # Steps, sleeps and signals

    @overload
    async def step(
        self,
        name: str,
        function: Callable[..., Coroutine[Any, Any, T]],
        /,
        *args: Any,
        connection: Any,
        **kwargs: Any,
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[..., T], /, *args: Any, connection: Any, **kwargs: Any
    ) -> T: ...
    @overload
    async def step(
        self, name: str, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def step(self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def step(
        self, name: str, function: Callable[..., Any], /, *args: Any, connection: Any = None, **kwargs: Any
    ) -> Any:
        """Call the function and record its result: every later run of the job gets that, without a call.

        The result is JSON, decoded to the return annotation of the function. With a `connection` it is recorded in the
        caller's own transaction. A name is used once in a run. LeaseLostError if another worker may have the job by now.
        """
        return await self._run(connection).step(name, function, args, kwargs, connection)

    async def sleep(self, name: str, duration: float | timedelta) -> None:
        """Suspend the job for that time, in seconds or as a timedelta; meanwhile it holds no slot and uses no attempt.

        The handler is then run again from its top, and this call returns at once.
        """
        await self._run().sleep(name, _within_bounds("duration", duration))

    async def wait_for(self, name: str, timeout: float | timedelta | None = None) -> Any:
        """The payload of the signal with that name; until it comes, the job is suspended as in `sleep`.

        SignalTimeout if it does not come in time, in this run and in all later ones.
        """
        return await self._run().wait_for(
            name, None if timeout is None else _within_bounds("timeout", timeout)
        )

    async def finish(self, result: Any = None, *, connection: Any) -> None:
        """Record that the job is done, with that result, in the caller's own transaction; what the handler returns does not count.

        LeaseLostError if another worker may have the job by now.
        """
        await self._run(connection).finish(result, connection)

    step_sync = sync(step)
    sleep_sync = sync(sleep)
    wait_for_sync = sync(wait_for)
    finish_sync = sync(finish)

    def _run(self, connection: Any = None) -> DurableRun:
        if self._durable is None:
            raise RuntimeError("a handler that is called directly records nothing: run it with `jobs.run(…)`")
        if connection is not None and not any(connection is each for each in self.connections):
            self.connections = (*self.connections, connection)
        return self._durable()

    def __repr__(self) -> str:
        return f"<job {self.id!r} of type {self.type!r}, attempt {self.attempts}>"


def _within_bounds(field: str, value: float | timedelta) -> float:
    seconds = seconds_of(field, value)
    if seconds > LONGEST_DELAY:
        raise BadInputError(field, f"must be at most {LONGEST_DELAY:,.0f} seconds (ten years), got {value!r}")
    return seconds


class JobLogFilter(logging.Filter):
    """Gives what a handler logs the fields `job_id`, `job_type` and `attempt`: for a handler of `logging`.

    `jobpipe serve` and `jobpipe worker` have it. It lets every record pass.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        job = _current.get(None)
        if job is not None and not hasattr(record, "job_id"):
            record.job_id, record.job_type, record.attempt = job.id, job.type, job.attempts
        return True


def current_job() -> CurrentJob:
    """The job that the calling handler runs; RuntimeError outside of one."""
    try:
        return _current.get()
    except LookupError:
        raise RuntimeError("current_job() works only in a handler while it runs") from None


def log_of_current() -> LogSink | None:
    """Where what the calling handler logs is kept; None outside of one, or if it is not kept."""
    current = _current.get(None)
    if current is None or current._log_of_run is None:
        return None
    return current._log_of_run()


set_current = _current.set
reset_current = _current.reset


def call_as(current: CurrentJob | None, call: Callable[[], Any]) -> Any:
    """Call a handler directly, as that job; as nothing new without one, or where a handler runs already."""
    if current is None or _current.get(None) is not None:
        return call()
    token = set_current(current)
    try:
        result = call()
    finally:
        reset_current(token)
    return _await_as(current, result) if isawaitable(result) else result


async def _await_as(current: CurrentJob, result: Any) -> Any:
    token = set_current(current)
    try:
        return await result
    finally:
        reset_current(token)
