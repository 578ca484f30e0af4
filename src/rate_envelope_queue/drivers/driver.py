"""What the two queues share: their options, the calls that never wait, and the judgement of a run.

A driver owns the lock, the workers and the waiting. `_lock` is a real one for threads; on an event
loop, where nothing else runs meanwhile, it is none. User code and logs run while it is not held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, Generic, Literal
from weakref import WeakMethod

from .._checks import Seconds, duration
from ..clock import Clock, SystemClock
from ..context import Context
from ..core.entry import Entry
from ..core.explain import explain
from ..core.lifecycle import Event, QueueState
from ..core.pool import Pool, W
from ..core.run import SUCCEEDED, Call, HookBudget, Outcome, Run, steps
from ..core.verdict import Mode
from ..core.workqueue import WorkQueue
from ..envelope import PLAIN, Envelope, Invoker, Stamp, check_stamps, identity_of, listeners
from ..errors import BadFieldsError, Cancelled, CapacityExceededError, QueueTerminatedError
from ..explanation import Explanation
from ..limiters import Limiter
from ..metrics import Metrics
from ..rates import Rate
from ..stamps import compose
from ..stats import Stats
from .futures import abandon
from .judge import Judge, Judgement
from .options import by_type, check_options, permits
from .waiters import Ring, Waiters, ring_all
from .wall import WallWatch

StopMode = Literal["drain", "stop"]
OnPeriodicError = Literal["interval", "backoff"]

DEFAULT_BUDGET = HookBudget()
SYSTEM_CLOCK = SystemClock()
INSURANCE = 10.0
"""Seconds after which a queue looks for work by itself, so that a lost wake-up cannot strand any."""

inside: ContextVar[object] = ContextVar("rate_envelope_queue.inside", default=None)
"""The queue whose envelope this code runs in."""


class Driver(ABC, Generic[W]):
    """The common part of RateEnvelopeQueue and AsyncRateEnvelopeQueue."""

    _lock: AbstractContextManager[Any]

    def __init__(
        self,
        name: str,
        *,
        workers: int,
        stop_mode: StopMode = "drain",
        waiting: bool = True,
        capacity: int = 0,
        stamps: Iterable[Stamp] = (),
        limiter: Limiter | None = None,
        on_periodic_error: OnPeriodicError = "interval",
        rate: Rate | str | None = None,
        rates: Mapping[str, Rate | str] | None = None,
        concurrency: Mapping[str, int] | None = None,
        hook_budget: HookBudget = DEFAULT_BUDGET,
        parent: Context | None = None,
        metrics: bool = True,
        clock: Clock = SYSTEM_CLOCK,
        replace_stuck: bool = False,
    ) -> None:
        check_options(locals())
        self._name = name
        self._workers = workers
        self._drains = stop_mode == "drain"
        self._waiting = waiting
        self._stamps = check_stamps(stamps)
        self._on_send = listeners(self._stamps)
        self._budget = hook_budget
        self._clock = clock
        self._now = clock.now
        self._replace_stuck = replace_stuck
        self._prepare()
        self._judge = Judge(name, clock, Mode(on_periodic_error), limiter)
        self._terminates_at_end = False
        self._core = WorkQueue(
            capacity=capacity,
            clock=clock,
            tick=clock.tick,
            metrics=metrics,
            rate=None if rate is None else Rate.of("rate", rate),
            rates=by_type("rates", rates, Rate.of),
            concurrency=by_type("concurrency", concurrency, permits),
        )
        self._places = self._core.backlog.places
        self._pool: Pool[W] = Pool(self._core)
        self._starts = 0
        self._waiters = Waiters()
        if hasattr(clock, "attach"):
            clock.attach(self)
        self._wall = WallWatch(self._core, clock)
        self._parent = parent
        self._on_cancel = _weakly(self._parent_cancelled)
        if parent is not None:
            parent._subscribe(self._on_cancel)

    @property
    def name(self) -> str:
        return self._name

    @property
    def state(self) -> QueueState:
        return self._core.state

    @property
    def capacity(self) -> int:
        """How many envelopes may be in the queue; 0 is no limit."""
        return self._core.capacity

    @property
    def occupied(self) -> int:
        """How many envelopes are in the queue: ready, running, delayed or sent before the start."""
        return self._core.backlog.occupied

    @property
    def blacklist(self) -> frozenset[str]:
        """The types that were stopped by StopType."""
        with self._lock:
            return frozenset(self._core.blacklist)

    def stats(self) -> Stats:
        """What is in the queue now, and what it has counted since it was made."""
        with self._lock:
            core = self._core
            core.promote(self._now())
            return Stats(
                state=core.state,
                ready=core.backlog.ready,
                running=core.backlog.running,
                delayed=core.backlog.delayed,
                occupied=core.backlog.occupied,
                capacity=core.capacity,
                stuck=self._pool.stuck,
                added=core.added,
                done=core.done,
                failed=core.failed,
                retried=core.retried,
                dropped=core.dropped,
                panicked=core.panicked,
            )

    def metrics(self) -> Metrics:
        """What the queue has measured; RuntimeError if it was made with metrics=False."""
        with self._lock:
            core, now = self._core, self._now()
            core.promote(now)
            measures = core.measures
            if measures is None:
                raise RuntimeError(f"queue {self._name!r} was made with metrics=False and measures nothing")
            ages = [now - run.began_at for run in core.backlog.runs()]
            return Metrics(
                adds=core.adds,
                depth=core.backlog.ready,
                queue_duration=measures[0],
                work_duration=measures[1],
                unfinished_seconds=sum(ages),
                longest_running_seconds=max(ages, default=0.0),
                retries=core.retried,
                capacity=core.capacity,
                occupied=core.backlog.occupied,
                dropped=core.dropped,
                stuck=self._pool.stuck,
                panics=core.panicked,
                throttled=core.backlog.throttled,
            )

    def explain(self, envelope: Envelope[Any]) -> Explanation:
        """Why an envelope (or what has its key) is not running."""
        _check_envelope(envelope)
        with self._lock:
            now = self._now()
            self._core.promote(now)
            answer = explain(self._core, envelope, now)
        return Explanation.of(answer, now, self._clock.wall())

    def cancel(self, envelope: Envelope[Any]) -> bool:
        """Take an envelope (or what has its key) out for good; was it there?

        A running one has its context cancelled and is finished after this run.
        """
        _check_envelope(envelope)
        with self._lock:
            found, run = self._core.cancel(envelope)
            self._dismiss()
        if run is not None:
            run.cancel("the envelope was cancelled")
        self._let_go()
        return found

    def pause(self) -> None:
        """Start no more envelopes; what runs goes on, and sending too."""
        with self._lock:
            self._core.pause()
            self._dismiss()
        self._let_go()

    def resume(self) -> None:
        """Go on after a pause."""
        with self._lock:
            self._core.resume()
            self._wake()

    def allow(self, type: str) -> bool:
        """Take a type off the blacklist; was it on it?"""
        with self._lock:
            return self._core.allow(type)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}: {self.state.value}, {self.occupied} envelopes>"

    # What a driver adds. Methods marked * are called with the lock held.

    @abstractmethod
    def _prepare(self) -> None:
        """Make what the driver itself needs: `_lock`, and what its workers and alarms are."""

    @abstractmethod
    def _hire(self) -> None:
        """* Start the workers."""

    @abstractmethod
    def _set_alarm(self) -> None:
        """* See to it that somebody looks when the next envelope comes due."""

    @abstractmethod
    def _closed(self) -> None:
        """* The last worker has ended."""

    def _wake(self) -> None:
        """* See to it that what is ready and what comes due is taken."""
        if self._pool.idle:
            self._pool.wake(self._now())
            self._set_alarm()

    def _rest(self, worker: W) -> bool:
        """* A worker has nothing to take: it lies down (True) or ends."""
        stays = self._pool.rest(worker)
        if stays:
            self._set_alarm()
        elif not self._pool.workers:
            self._closed()
        return stays

    def _dismiss(self) -> None:
        """* After there may be no more to do: send home who sleeps, if the queue stops."""
        self._pool.dismiss()
        if not self._pool.workers:
            self._closed()

    # Sending

    def _entries(self, envelopes: tuple[Envelope[Any], ...], delay: Seconds) -> list[Entry]:
        """The arguments of a send, checked; BadFieldsError before anything is changed."""
        seconds = duration("delay", delay)
        for envelope in envelopes:
            self._check_sendable(envelope)
        now = self._now()
        due = now + seconds if seconds else None
        return [self._entry(envelope, now, due) for envelope in envelopes]

    def _check_sendable(self, envelope: Envelope[Any]) -> None:
        _check_envelope(envelope)

    def _entry(self, envelope: Envelope[Any], now: float, due: float | None) -> Entry:
        handling = envelope._handling or PLAIN
        if (self._on_send or handling.on_send) and not self._is_ready(envelope):
            for tell in (*self._on_send, *handling.on_send):
                tell(envelope)
        schedule = handling.schedule
        if schedule is None:
            return Entry(envelope, due, due)
        wall = self._clock.wall()
        if due is not None:
            now, wall = due, wall + timedelta(seconds=due - now)
        first, beat = schedule.first_due(now, wall)
        return Entry(envelope, first, due, beat)

    def _is_ready(self, envelope: Envelope[Any]) -> bool:
        """Does it wait already, so that sending it changes nothing?"""
        return self._places.get(identity_of(envelope)).__class__ is float

    def _try_send(self, entries: list[Entry], ring: Ring) -> bool:
        """* Admit them if it is this sender's turn and there is room."""
        try:
            self._core.check(entries)
        except CapacityExceededError as error:
            if error.needed > error.capacity:
                raise
            return False
        if self._waiters.senders[0] is not ring:
            return False
        self._add(entries)
        return True

    def _add(self, entries: list[Entry]) -> None:
        """* Admit all, or raise why not."""
        self._core.add(entries, self._now())
        self._wake()

    # Running

    def _steps(self, run: Run, invoke: Invoker) -> Iterator[Call]:
        """The calls of a whole run, with the stamps around the innermost."""
        handling = run.envelope._handling or PLAIN
        stamps = self._stamps + handling.stamps
        if stamps:
            invoke = partial(_call_stamped, stamps, invoke)
        return steps(run, handling, invoke, None, self._budget, self._now)

    def _report(self, run: Run, error: BaseException | None) -> Iterator[Call]:
        """The calls that are left after a bare call of `invoke`."""
        return steps(run, run.envelope._handling or PLAIN, None, error, self._budget, self._now)

    def _judged(self, run: Run, outcome: Outcome) -> Judgement | None:
        """What follows a run; None if it succeeded and the queue itself knows what follows."""
        handling = run.envelope._handling or PLAIN
        if outcome is SUCCEEDED and handling.schedule is None:
            abandon(run.envelope)  # a stamp may have succeeded without the call
            return None
        if outcome is SUCCEEDED and handling.ticks is not None and self._judge.leaves_ticks:
            return None
        return self._judge.judge(run, outcome)

    def _settle(self, run: Run, judged: Judgement | None, now: float) -> None:
        """* Record how a run ended, apart from taking the next."""
        if judged is None:
            self._core.finish(run, now)
        else:
            self._core.settle(run, *judged, now)

    def _let_go(self) -> None:
        """Cancel the futures of what was dropped, and tell who waits for room or quiet."""
        with self._lock:
            leavers, self._core.leavers = self._core.leavers, []
            rings = self._changed()
        for envelope in leavers:
            abandon(envelope)
            self._judge.forget(envelope)
        ring_all(rings)

    # Starting and ending

    def _try_start(self, _: Ring) -> bool:
        """* Start, if the state allows it; False: wait for the end of the stop."""
        if self._parent is not None and self._parent.done and self.state is not QueueState.TERMINATED:
            raise Cancelled("the parent context was cancelled: the queue cannot start")
        was_running = self.state is QueueState.RUNNING
        if self._core.apply(Event.START):
            if not was_running:
                self._starts += 1
                self._hire_all()
            return True
        if self.state is QueueState.TERMINATED:
            raise QueueTerminatedError(f"queue {self._name!r} was terminated and never starts again")
        if inside.get() is self:
            raise RuntimeError(
                "start() from inside an envelope, while the queue stops, would wait for itself"
            )
        return False

    def _hire_all(self) -> None:
        """* Start the workers, or none: what cannot start one (no more threads) leaves the queue stopping."""
        self._pool.is_waking = False
        try:
            self._hire()
        except BaseException:
            self._core.stop(Event.STOP, drains=False, keeps=True, now=self._now())
            self._dismiss()
            raise
        self._wake()

    def _begin_stop(self, *, drains: bool, keeps: bool, event: Event = Event.STOP) -> int:
        """Have the workers end; returns which start this ends, for `_has_ended`."""
        with self._lock:
            starts = self._starts
            self._core.stop(event, drains=drains, keeps=keeps, now=self._now())
            self._wake()  # for what has just come due
            runs = self._core.backlog.runs() if event is Event.PARENT_CANCELLED else []
            self._dismiss()
            rings = self._waiters.everybody()
        ring_all(rings)
        for run in runs:
            run.cancel("the parent context was cancelled")
        self._let_go()
        return starts

    def _begin_terminate(self) -> list[Envelope[Any]]:
        with self._lock:
            unrun = self._core.terminate()
            runs = self._core.backlog.runs()
            self._dismiss()
            rings = self._waiters.everybody()
        if self._parent is not None:
            self._parent._unsubscribe(self._on_cancel)
        for run in runs:
            run.cancel("the queue was terminated")
        ring_all(rings)
        for envelope in unrun:
            abandon(envelope)
            self._judge.forget(envelope)
        return unrun

    def _parent_cancelled(self) -> None:
        self._begin_stop(drains=False, keeps=True, event=Event.PARENT_CANCELLED)

    def _has_ended(self, starts: int, _: Ring) -> bool:
        """* Have all workers of that start ended, whether or not there was another start since?"""
        return not self._pool.workers or self._starts != starts

    # Waiting, for both queues: one sleeps between two steps, the other awaits

    def _waiting_for(
        self, attempt: Callable[[Ring], bool], line: deque[Ring], ring: Ring
    ) -> Generator[None, None, None]:
        """Yield, to be resumed after a ring, until the attempt (made with the lock held) succeeds."""
        with self._lock:
            self._waiters.add(line, ring)
        try:
            while True:
                with self._lock:
                    if attempt(ring):
                        return
                yield
        finally:
            with self._lock:
                self._waiters.remove(line, ring)
                rings = self._changed()
            ring_all(rings)

    def _changed(self) -> list[Ring]:
        """* Who is to be told of a change."""
        return self._waiters.concerned(is_quiet=self._is_quiet, has_ended=not self._pool.workers)

    def _is_quiet(self, _: Ring | None = None) -> bool:
        """* Is nothing ready or running?"""
        return self._core.backlog.ready == 0 and self._core.backlog.running == 0

    # For a clock that is moved by hand

    def _next_alarm_at(self) -> float:
        """When something happens by itself; infinity if nothing will."""
        with self._lock:
            return self._core.next_change(self._now())

    @abstractmethod
    def _look(self) -> None:
        """See to what has come due, as at an alarm."""

    def _unfinished(self) -> set[object]:
        """The runs under way, and the queue itself while a worker is about to take something."""
        with self._lock:
            unfinished = set[object](self._core.backlog.runs())
            if self._core.can_take(self._now()) and any(worker.run is None for worker in self._pool.workers):
                unfinished.add(self)
            return unfinished

    def _watch(self, ring: Ring) -> Callable[[], None]:
        """Ring at each change, until the returned function is called."""
        with self._lock:
            self._waiters.add(self._waiters.watchers, ring)

        def unwatch() -> None:
            with self._lock:
                self._waiters.remove(self._waiters.watchers, ring)

        return unwatch


def _call_stamped(stamps: tuple[Stamp, ...], invoke: Invoker, ctx: Context, envelope: Envelope[Any]) -> Any:
    """The call with its stamps, applied within the run, so that what they raise is the run's error."""
    return compose(stamps, invoke)(ctx, envelope)


def _check_envelope(envelope: object) -> None:
    if not isinstance(envelope, Envelope):
        hint = "; give them one by one, not as a list" if isinstance(envelope, list | tuple) else ""
        raise BadFieldsError(f"envelope must be an Envelope, got {envelope!r}{hint}")


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    """A call of the method that does not keep its object alive."""
    reference = WeakMethod(method)

    def call() -> None:
        target = reference()
        if target is not None:
            target()

    return call
