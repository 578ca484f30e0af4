"""ChildRun: one run of a job in a child: what `current_job()` is there, how the handler is called, and what that comes to.

What it came to is decided here, where the error is: the worker gets the outcome, and records it.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from rate_envelope_queue import Context, Envelope

from ...errors import BadInputError
from ...jobtypes.current import CurrentJob, set_current
from ...jobtypes.durable import DurableRun, here
from ...model import json
from ...model.job import Move, Progress
from ...model.lease import Outcome
from ...model.logs import LogChunk
from ...model.outcome import Hopeless, outcome_of, without_group
from .messages import CHUNKS, Lends, Line, Lost, Printed, Report, Start, plain

if TYPE_CHECKING:
    from ...gateway.lazy_store import Gateway
    from ...jobtypes.jobtype import JobType
    from .connection import Connection


class RunContext(Context):
    """That of a run with a deadline. Nobody cancels it: the worker kills the process."""

    __slots__ = ()

    def __init__(self, deadline: float | None) -> None:
        super().__init__()
        if deadline:
            self._allowed = deadline
            self._until = self._clock.now() + deadline


class ChildDurableRun(DurableRun):
    """Tells the worker that the handler has lent a connection of its own: its transaction may hold a lock of the store."""

    def __init__(
        self, gateway: Gateway, run: ChildRun, max_result: int, on_lend: Callable[[], object]
    ) -> None:
        self._lends = False
        self._on_lend = on_lend
        super().__init__(gateway, run, run, run.context, max_result)

    @property
    def has_transactions(self) -> bool:
        return self._lends

    @has_transactions.setter
    def has_transactions(self, lends: bool) -> None:
        if lends and not self._lends:
            self._on_lend()
        self._lends = lends


class ChildRun:
    """A run, as its DurableRun and the logs see it."""

    def __init__(
        self,
        connection: Connection,
        gateway: Gateway,
        job_type: JobType[..., Any],
        start: Start,
        max_result: int,
    ) -> None:
        self.claim = start.claim
        self.started_at = start.started_at
        self.is_gone = False
        self.is_finishing = False
        self.progress: Progress | None = None
        self.owner: object = None
        self.context = RunContext(start.claim.deadline)
        self._number = start.run
        self._connection = connection
        self._gateway = gateway
        self._job_type = job_type
        self._ahead = start.store_now - self._now()
        self._keeps_logs = start.keeps_logs
        self._max_result = max_result
        self._durable: DurableRun | None = None

    def outcome(self, runner: asyncio.Runner) -> Outcome:
        """Run it to its end; an event loop is there for who needs one."""
        try:
            result = contextvars.copy_context().run(self._run, runner)
            if self._durable is not None and not self.is_finishing and self._durable.problem is not None:
                raise RuntimeError(self._durable.problem)
            return Outcome(move=Move.SUCCEED, result=_encoded(result))
        except BaseException as error:  # Why all: SystemExit ends the run, and not the process
            job_type = self._job_type
            return outcome_of(without_group(error), self.claim, job_type.backoff, job_type.is_final)

    def _run(self, runner: asyncio.Runner) -> Any:
        claim, job_type = self.claim, self._job_type
        try:
            argument = job_type.decode(claim.payload)
        except BadInputError as error:
            raise Hopeless from error
        set_current(
            CurrentJob(
                claim,
                self.context,
                self._report,
                (lambda: self) if self._keeps_logs else None,
                self._durable_run,
            )
        )
        call = self._stamped()
        envelope = Envelope(
            call,
            id=claim.id,
            type=claim.type,
            payload=argument,
            priority=claim.priority,
            deadline=claim.deadline or 0,
        )

        async def call_async() -> Any:
            result = call(self.context, envelope)
            return await result if isawaitable(result) else result

        if job_type.is_async:
            return runner.run(call_async(), context=contextvars.copy_context())
        result = call(self.context, envelope)
        return (
            runner.run(_awaited(result), context=contextvars.copy_context())
            if isawaitable(result)
            else result
        )

    def _stamped(self) -> Callable[[Context, Envelope[Any]], Any]:
        """The handler with its stamps around it."""
        job_type = self._job_type

        def call(_: Context, envelope: Envelope[Any]) -> Any:
            self.owner = here()
            return job_type.run(envelope.payload)

        async def call_async(_: Context, envelope: Envelope[Any]) -> Any:
            self.owner = here()
            return await job_type.run(envelope.payload)

        stamped: Callable[[Context, Envelope[Any]], Any] = call_async if job_type.is_async else call
        for stamp in reversed(job_type.stamps):
            stamped = stamp(stamped)
        return stamped

    def _durable_run(self) -> DurableRun:
        if self._durable is None:
            lend = partial(self._connection.send, Lends(self._number))
            self._durable = ChildDurableRun(self._gateway, self, self._max_result, lend)
        return self._durable

    def _report(self, progress: Progress) -> None:
        self.progress = progress
        self._connection.send(Report(self._number, progress))

    def _now(self) -> float:
        return self.context._clock.now()

    # What a DurableRun needs of a worker

    def store_now(self, _: ChildRun) -> float:
        """What time it is by the clock of the store."""
        return self._ahead + self._now()

    def lose(self, _: ChildRun) -> None:
        """The store says that its lease is lost."""
        self.is_gone = True
        self._connection.send(Lost(self._number))

    def unstored_logs_of(self, _: ChildRun) -> tuple[LogChunk, ...]:
        """What it has logged; the worker is told that it writes its outcome itself."""
        return CHUNKS.decode(self._connection.finishing(self._number))

    # Its log

    def add(self, level: str, logger: str, message: str) -> None:
        """Keep a line."""
        self._keep(Line(self._number, plain(level), plain(logger), plain(message)))

    def print(self, text: str) -> None:
        """Keep what was printed."""
        self._keep(Printed(self._number, plain(text)))

    def _keep(self, message: Line | Printed) -> None:
        if self._connection.is_own:  # Why: to log, or to print, must not fail in a fork
            self._connection.send(message)


async def _awaited(result: Any) -> Any:
    return await result


def _encoded(value: Any) -> bytes:
    try:
        return json.encode_result(value)
    except BadInputError as error:
        raise Hopeless from error
