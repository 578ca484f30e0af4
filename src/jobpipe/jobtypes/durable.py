"""DurableRun: what one run of a job records, and how it is suspended; made with the first call that needs it.

Every write is a compare-and-set on the lease. A run that has lost it gets LeaseLostError, there and in every later call.
Handlers call it from the event loop, and from threads as the twins of `CurrentJob` do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import msgspec

from ..errors import (
    BadInputError,
    LeaseLostError,
    SignalTimeout,
    StepResultError,
    StoreAwayError,
    StoreBusyError,
)
from ..gateway.async_store import AWAY_PAUSES
from ..gateway.sync import in_thread, is_sync
from ..model import json
from ..model.durable import (
    MOST_RESULTS,
    MOST_STEPS,
    NO_TIMEOUT,
    DurableState,
    ReceivedKind,
    Step,
    name_is_used,
)
from ..model.ids import check_id
from ..model.job import Move, Progress
from ..model.lease import Claim, Outcome, Settlement
from ..model.logs import LogChunk
from ..model.outcome import Suspension
from ..stores.guests import lent_connections
from .results import decoder_of, result_of

if TYPE_CHECKING:
    from rate_envelope_queue import Context

    from ..gateway.lazy_store import Gateway

P = ParamSpec("P")
T = TypeVar("T")

_inside_step: ContextVar[bool] = ContextVar("jobpipe.inside_step", default=False)


class Held(Protocol):
    """The run, as its worker holds it."""

    claim: Claim
    is_gone: bool
    """Was it given back, or lost?"""
    is_finishing: bool
    """Has it written its outcome in a transaction of its own?"""
    progress: Progress | None

    @property
    def owner(self) -> object:
        """The task, or the id of the thread, in which its handler was called."""

    @property
    def started_at(self) -> float: ...


class Worker(Protocol):
    """What a run needs of who holds it."""

    def store_now(self, run: Any) -> float:
        """What time it is by the clock of the store."""

    def lose(self, run: Any) -> None:
        """The store says that its lease is lost."""

    def unstored_logs_of(self, run: Any) -> tuple[LogChunk, ...]:
        """What it has logged that may not be stored yet."""


class DurableRun:
    """The steps, sleeps and signals of one run."""

    def __init__(
        self, gateway: Gateway, worker: Worker, run: Held, context: Context, most_result: int
    ) -> None:
        self._store, self._async_store, _ = gateway
        self._worker = worker
        self._run = run
        self._context = context
        self._most_result = most_result
        self._state: _State | None = None
        self._names: dict[str, _Use] = {}  # by this run
        self._suspension: Suspension | None = None
        self.has_transactions = False
        """Has it recorded anything in a transaction of the handler's own, which may be open?"""

    @property
    def problem(self) -> str | None:
        """Why a handler that returned has not succeeded; None if it has."""
        if self._suspension is not None:
            return (
                f"the handler went on after it was suspended ({self._suspension}): "
                "do not catch the BaseException that `sleep` and `wait_for` raise"
            )
        return None

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        connection: Any,
    ) -> Any:
        """The recorded result of the step; if there is none, call the function and record what it returns."""
        self._check(name)
        if is_sync() and iscoroutinefunction(function):
            raise BadInputError("function", "is a coroutine function: use `await job.step(…)` with it")
        decode = decoder_of(function)
        state = self._state or await self._load()
        recorded = state.steps.get(name)
        if recorded is None:
            state.refuse_more(name)
            if connection is None and lent_connections():
                await self._refuse_held_up()  # Why before the call: its result could not be recorded
        await self._use(name, is_in_transaction=connection is not None)
        if recorded is not None:
            return decode(recorded, name)
        self._check_state()  # Why again: the lease may have been lost meanwhile
        began_at = self._now()
        try:
            value = await _call(function, args, kwargs, is_here=connection is not None)
        except BaseException:
            del self._names[name]  # it may be called again
            raise
        raw = self._encoded(name, value, state)
        step = Step(name=name, began_at=began_at, ended_at=self._now(), result=raw)
        lease = self._run.claim.lease
        if connection is None:
            self._keep((await self._insist(self._store.write_steps, [(lease, step)]))[0])
            state.record(name, raw)
        else:
            self.has_transactions = True
            try:
                await _end_of(self._store.write_step_in(connection, lease, step))
            except LeaseLostError:
                self._keep(False)
            except BadInputError as error:
                if error.field != "connection":
                    raise
                # Why final: the function was called, and the next run would bring the same connection.
                raise StepResultError("connection", str(error).removeprefix("connection ")) from None
            state.record(name, raw, is_unsure=True)
        return decode(raw, name)

    async def sleep(self, name: str, seconds: float) -> None:
        """Return if the sleep is over; else suspend the job until it is."""
        self._check(name)
        self._check_owner("sleep")
        if self._run.is_finishing and lent_connections():
            await self._refuse_held_up()
        state = await self._load()
        until = state.sleeps.get(name)
        if until is None:
            state.refuse_more(name)
        await self._use(name)
        if until is not None and until <= self._now():
            return
        self._suspend(Outcome(move=Move.SLEEP, name=name, delay=seconds))

    async def wait_for(self, name: str, timeout: float | None) -> Any:
        """The payload of the signal; SignalTimeout; or suspend the job until one of them is there."""
        self._check(name)
        self._check_owner("wait_for")
        state = await self._load()
        known = state.signals.get(name)
        if known is None and name not in state.timed_out:
            received = await self._insist(self._store.receive, self._run.claim.lease, name)
            self._keep(received.kind is not ReceivedKind.LOST)
            if received.kind is ReceivedKind.NOTHING:
                delay = NO_TIMEOUT if timeout is None else timeout
                self._suspend(Outcome(move=Move.WAIT, name=name, delay=delay))
            known = received.payload
            if known is None:
                state.timed_out.add(name)
            else:
                state.signals[name] = known
        if known is None:
            raise SignalTimeout(name)
        return msgspec.json.decode(known)

    async def finish(self, result: Any, connection: Any) -> None:
        """Write the outcome of the job in the caller's transaction."""
        self._check_state()
        self._check_owner("finish")
        run = self._run
        try:
            raw = json.encode_result(result)
        except BadInputError as error:
            raise StepResultError("result", str(error).removeprefix("result ")) from None
        outcome = Outcome(move=Move.SUCCEED, result=raw, progress=run.progress)
        logs = self._worker.unstored_logs_of(run)
        settlement = Settlement(run.claim.lease, outcome, run.started_at, logs)
        self.has_transactions = True
        was_finishing, run.is_finishing = run.is_finishing, True
        try:
            await _end_of(self._store.settle_in(connection, settlement))
        except BaseException as error:
            run.is_finishing = was_finishing
            self._keep(not isinstance(error, LeaseLostError))
            raise

    # Checks

    def _check(self, name: str) -> None:
        check_id(name, "name")
        self._check_state()

    def _check_state(self) -> None:
        if self._run.is_gone:
            raise LeaseLostError(self._run.claim.id)
        problem = self.problem
        if problem is not None:
            raise RuntimeError(problem)

    def _check_owner(self, call: str) -> None:
        if self._run.owner != here() or _inside_step.get():
            raise RuntimeError(
                f"{call} works only in the handler itself: not in a step, and not in another task or thread"
            )

    async def _use(self, name: str, *, is_in_transaction: bool = False) -> None:
        """Let no other step or sleep of this run have the name; again only where its transaction was rolled back."""
        use = _Use(is_in_transaction)
        before = self._names.setdefault(name, use)
        if before is use:
            return
        if not before.is_in_transaction or await self._is_recorded(name):
            raise name_is_used(name)
        self._names[name] = use

    async def _is_recorded(self, name: str) -> bool:
        found = await self._insist(self._store.durable, self._run.claim.id)
        return found is not None and any(step.name == name for step in found.steps)

    def _encoded(self, name: str, value: Any, state: _State) -> bytes:
        try:
            raw = json.encode(value, "result")
        except BadInputError as error:
            raise StepResultError(result_of(name), str(error).removeprefix("result ")) from None
        if len(raw) > self._most_result:
            raise StepResultError(
                result_of(name),
                f"has {len(raw):,} bytes as JSON, the limit is {self._most_result:,}: "
                "store the data elsewhere and return its address, or raise JOBPIPE_MAX_PAYLOAD",
            )
        if state.size + len(raw) > MOST_RESULTS:
            raise StepResultError(
                result_of(name),
                f"does not fit: the results of a job have at most {MOST_RESULTS:,} bytes together",
            )
        return raw

    # The store

    def _now(self) -> float:
        return self._worker.store_now(self._run)

    async def _load(self) -> _State:
        if self._state is None:
            found = await self._insist(self._store.durable, self._run.claim.id)
            if self._state is None:  # Why asked again: steps may run side by side
                self._state = _State(found or DurableState())
        return self._state

    async def _insist(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb until the store answers: what has been done must not be forgotten while it is away."""
        for pause in chain(AWAY_PAUSES, repeat(AWAY_PAUSES[-1])):
            try:
                return await self._async_store.call(verb, *args, **kwargs)
            except StoreAwayError as error:
                # Why not where it is busy: what holds the lock may be a transaction of this very handler.
                if self._context.done or isinstance(error, StoreBusyError):
                    raise
            await _pause(pause)
        raise AssertionError  # the pauses have no end

    async def _refuse_held_up(self) -> None:
        """StoreError if a write would wait for a transaction of this handler's own: one of nothing is refused, too."""
        await self._insist(self._store.write_steps, ())

    def _keep(self, is_held: bool) -> None:
        if is_held:
            return
        if self._run.is_finishing:
            raise RuntimeError("the handler has finished its job: nothing more can be recorded")
        self._worker.lose(self._run)
        raise LeaseLostError(self._run.claim.id) from None

    def _suspend(self, outcome: Outcome) -> None:
        self._suspension = Suspension(outcome)
        raise self._suspension


class _Use:
    """That a step or a sleep has its name."""

    def __init__(self, is_in_transaction: bool) -> None:
        self.is_in_transaction = is_in_transaction


class _State:
    """What is recorded of the job, as far as this run knows."""

    def __init__(self, found: DurableState) -> None:
        self.steps = {step.name: step.result for step in found.steps}
        self.unsure: dict[str, bytes] = {}  # steps of this run whose transactions may have been rolled back
        self.sleeps = {sleep.name: sleep.until for sleep in found.sleeps}
        self.signals = {signal.name: signal.payload for signal in found.signals if signal.is_used}
        self.timed_out = {wait.name for wait in found.waits if wait.is_timed_out}
        self.size = sum(map(len, self.steps.values()))
        """Bytes of all results."""

    def record(self, name: str, result: bytes, *, is_unsure: bool = False) -> None:
        recorded = self.unsure if is_unsure else self.steps
        self.size += len(result) - len(recorded.get(name, b""))
        recorded[name] = result

    def refuse_more(self, name: str) -> None:
        """BadInputError if the name is that of another kind, or there are too many."""
        if name in self.sleeps or name in self.steps:
            raise BadInputError("name", f"must not be used for both a step and a sleep, got {name!r}")
        if len(self.steps) + len(self.unsure) + len(self.sleeps) >= MOST_STEPS:
            raise BadInputError(
                "name", f"{name!r} is one too many: a job has at most {MOST_STEPS:,} steps and sleeps"
            )


def here() -> object:
    """The running task, or else the thread."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return threading.get_ident()


async def _call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], *, is_here: bool
) -> Any:
    """Call a step's function: a plain one in a thread, or in this one if it shares a transaction with the caller."""
    token = _inside_step.set(True)
    try:
        if is_here or is_sync() or iscoroutinefunction(function):
            value = function(*args, **kwargs)
        else:
            value = await in_thread(partial(function, *args, **kwargs))
        return await value if isawaitable(value) else value
    finally:
        _inside_step.reset(token)


async def _end_of(answer: Awaitable[None] | None) -> None:
    """Return when it is written on the caller's connection."""
    if isawaitable(answer):
        if is_sync():
            raise BadInputError(
                "connection", "is asynchronous: it needs a handler that awaits `step` and `finish`"
            )
        await answer


async def _pause(seconds: float) -> None:
    if is_sync():
        threading.Event().wait(seconds)
    else:
        await asyncio.sleep(seconds)
