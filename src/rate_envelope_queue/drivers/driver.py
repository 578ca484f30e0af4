"""What the two queues share: their options, the calls that never wait, starting and ending.

A driver owns the lock, the workers and the waiting. `_lock` is a real one for threads; on an event
loop, where nothing else runs meanwhile, it is none. User code and logs run while it is not held.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Generic, Literal

from .._checks import Seconds, duration
from ..clock import Clock, SystemClock
from ..context import Context
from ..core.entry import Entry
from ..core.explain import explain
from ..core.lifecycle import Event, QueueState
from ..core.pool import Pool, W
from ..core.run import HookBudget, Run
from ..core.verdict import Mode
from ..core.workqueue import WorkQueue
from ..envelope import Envelope, Stamp, check_stamps, listeners
from ..errors import CapacityExceededError, QueueTerminatedError
from ..explanation import Explanation
from ..limiters import Limiter
from ..metrics import Metrics
from ..rates import Rate
from ..stats import Stats
from .calls import Calls
from .futures import abandon
from .judge import Judge, Judgement
from .options import by_type, check_options, permits
from .parent import Parent
from .sending import Entries, check_envelope
from .snapshots import metrics_of, stats_of
from .waiters import Ring, Waiters, ring_all
from .wall import WallWatch

StopMode = Literal["drain", "stop"]
OnPeriodicError = Literal["interval", "backoff"]

DEFAULT_BUDGET = HookBudget()
SYSTEM_CLOCK = SystemClock()

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
        self._clock = clock
        self._now = clock.now
        self._replace_stuck = replace_stuck
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
        self._sends = Entries(clock, self._places, self._on_send)
        self._pool: Pool[W] = Pool(self._core)
        self._prepare()
        self._calls = Calls(self._stamps, hook_budget, clock.now)
        self._judge = Judge(name, clock, Mode(on_periodic_error), limiter)
        self._starts = 0
        self._waiters = Waiters(self._lock, self._core.backlog, self._pool)
        if hasattr(clock, "attach"):
            clock.attach(self)
        self._wall = WallWatch(self._core, clock)
        self._parent = Parent(parent, self._parent_cancelled)

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
            self._core.promote(self._now())
            return stats_of(self._core, stuck=self._pool.stuck)

    def metrics(self) -> Metrics:
        """What the queue has measured; RuntimeError if it was made with metrics=False."""
        with self._lock:
            now = self._now()
            self._core.promote(now)
            metrics = metrics_of(self._core, now, stuck=self._pool.stuck)
        if metrics is None:
            raise RuntimeError(f"queue {self._name!r} was made with metrics=False and measures nothing")
        return metrics

    def explain(self, envelope: Envelope[Any]) -> Explanation:
        """Why an envelope (or what has its key) is not running."""
        check_envelope(envelope)
        with self._lock:
            now = self._now()
            self._core.promote(now)
            answer = explain(self._core, envelope, now)
        return Explanation.of(answer, now, self._clock.wall())

    def cancel(self, envelope: Envelope[Any]) -> bool:
        """Take an envelope (or what has its key) out for good; was it there?

        A running one has its context cancelled and is finished after this run.
        """
        check_envelope(envelope)
        with self._lock:
            found, run = self._core.cancel(envelope)
            self._retire_idle()
        if run is not None:
            run.cancel("the envelope was cancelled")
        self._release_removed()
        return found

    def pause(self) -> None:
        """Start no more envelopes; what runs goes on, and sending too."""
        with self._lock:
            self._core.pause()
            self._retire_idle()
        self._release_removed()

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
    def _start_workers(self) -> None:
        """* Start the workers."""

    @abstractmethod
    def _set_alarm(self) -> None:
        """* Have the queue polled when the next envelope comes due."""

    @abstractmethod
    def _on_stopped(self) -> None:
        """* The last worker has ended."""

    def _wake(self) -> None:
        """* See to it that what is ready and what comes due is taken."""
        if self._pool.idle:
            self._pool.wake(self._now())
            self._set_alarm()

    def _park(self, worker: W) -> bool:
        """* A worker has nothing to take: it goes idle (True) or ends."""
        stays = self._pool.park(worker)
        if stays:
            self._set_alarm()
        elif not self._pool.workers:
            self._on_stopped()
        return stays

    def _retire_idle(self) -> None:
        """* Retire idle workers, if the queue stops and has nothing left to do."""
        self._pool.retire_idle()
        if not self._pool.workers:
            self._on_stopped()

    # Sending

    def _entries(self, envelopes: tuple[Envelope[Any], ...], delay: Seconds) -> list[Entry]:
        """The arguments of a send, checked; BadFieldsError before anything is changed."""
        seconds = duration("delay", delay)
        for envelope in envelopes:
            self._check_sendable(envelope)
        return self._sends.of(envelopes, seconds)

    def _check_sendable(self, envelope: Envelope[Any]) -> None:
        check_envelope(envelope)

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

    def _settle(self, run: Run, judged: Judgement | None, now: float) -> None:
        """* Record how a run ended, apart from taking the next."""
        if judged is None:
            self._core.finish(run, now)
        else:
            self._core.settle(run, *judged, now)

    def _release_removed(self) -> None:
        """Cancel the futures of what was dropped, and wake what waits for room or quiet."""
        with self._lock:
            removed, self._core.removed = self._core.removed, []
            rings = self._waiters.to_wake()
        for envelope in removed:
            abandon(envelope)
            self._judge.forget(envelope)
        ring_all(rings)

    # Starting and ending

    def _try_start(self, _: Ring) -> bool:
        """* Start, if the state allows it; False: wait for the end of the stop."""
        if self.state is not QueueState.TERMINATED:
            self._parent.check()
        was_running = self.state is QueueState.RUNNING
        if self._core.apply(Event.START):
            if not was_running:
                self._starts += 1
                self._start_pool()
            return True
        if self.state is QueueState.TERMINATED:
            raise QueueTerminatedError(f"queue {self._name!r} was terminated and never starts again")
        if inside.get() is self:
            raise RuntimeError(
                "start() from inside an envelope, while the queue stops, would wait for itself"
            )
        return False

    def _start_pool(self) -> None:
        """* Start the workers, or none: what cannot start one (no more threads) leaves the queue stopping."""
        self._pool.is_waking = False
        try:
            self._start_workers()
        except BaseException:
            self._core.stop(Event.STOP, drains=False, keeps=True, now=self._now())
            self._retire_idle()
            raise
        self._wake()

    def _begin_stop(self, *, drains: bool, keeps: bool, event: Event = Event.STOP) -> int:
        """Have the workers end; returns which start this ends, for `_has_ended`."""
        with self._lock:
            starts = self._starts
            self._core.stop(event, drains=drains, keeps=keeps, now=self._now())
            self._wake()  # for what has just come due
            runs = self._core.backlog.runs() if event is Event.PARENT_CANCELLED else []
            self._retire_idle()
            rings = self._waiters.all()
        ring_all(rings)
        for run in runs:
            run.cancel("the parent context was cancelled")
        self._release_removed()
        return starts

    def _begin_terminate(self) -> list[Envelope[Any]]:
        with self._lock:
            unrun = self._core.terminate()
            runs = self._core.backlog.runs()
            self._retire_idle()
            rings = self._waiters.all()
        self._parent.leave()
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

    def _is_quiet(self, _: Ring) -> bool:
        """* Is nothing ready or running?"""
        return self._core.backlog.is_quiet

    # For a clock that is moved by hand

    def _next_alarm_at(self) -> float:
        """When something happens by itself; infinity if nothing will."""
        with self._lock:
            return self._core.next_change(self._now())

    @abstractmethod
    def _poll(self) -> None:
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
        return self._waiters.watch(ring)
