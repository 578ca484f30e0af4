"""Time that tests control: clocks that stand still until `advance` moves them.

    clock = ManualClock()
    queue = RateEnvelopeQueue("q", workers=1, clock=clock)
    clock.advance("3 days")     # what comes due runs, in order, before this returns

`advance` steps from due time to due time. At each it wakes what is due and waits until every envelope
that it fired has ended, or waits for the clock itself.
"""

from __future__ import annotations

import asyncio
import re
import threading
from datetime import UTC, datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakSet

from ._checks import Seconds, duration
from .clock import Bell
from .drivers.aio_worker import working
from .errors import BadFieldsError
from .simulation import Arrival, Share, Simulation, Waits, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from .clock import Alarm

__all__ = ["Arrival", "AsyncManualClock", "ManualClock", "Share", "Simulation", "Waits", "simulate"]

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_UNITS = {
    "s": 1,
    "sec": 1,
    "second": 1,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
}
_PATIENCE = 1.0
"""Real seconds without any change after which a run that waits for something else is left alone.

Long, as a machine may be busy: giving up too early would make a test flaky.
"""


class Attached(Protocol):
    """What a manual clock needs of a queue."""

    def _next_alarm_at(self) -> float:
        """When something happens by itself; infinity if nothing will."""

    def _poll(self) -> None:
        """See to what has come due."""

    def _unfinished(self) -> set[object]:
        """The runs under way, and the queue itself while a worker is about to take something."""

    def _watch(self, ring: Callable[[], object]) -> Callable[[], None]:
        """Ring at each change, until the returned function is called."""


class _Sleeper(NamedTuple):
    """Who waits for the clock to come to an instant, until it has gone on."""

    until: float
    run: object
    """In which it waits, or what else `advance` wakes; None for a queue's own threads, which it need not wait for."""
    ring: Callable[[], object]
    is_woken: Callable[[], bool]
    """By the clock, or because it is to wait no longer."""


class _Manual:
    """What both clocks share: the instant, who waits for one, and the queues that follow."""

    tick = 0.0

    def __init__(self, start: datetime | None = None) -> None:
        if start is not None and (not isinstance(start, datetime) or start.utcoffset() is None):
            raise BadFieldsError(f"start must be an aware datetime, got {start!r}")
        self._epoch = (start or _EPOCH).astimezone(UTC)
        self._instant = 0.0
        self._lock = threading.Lock()
        self._sleepers: dict[object, _Sleeper] = {}
        self._queues: WeakSet[Attached] = WeakSet()
        self._stragglers: set[object] = set()  # runs that wait for something other than the clock
        self._ring: Callable[[], object] = lambda: None  # wakes who advances

    def now(self) -> float:
        """The monotonic instant, in seconds since the clock was made."""
        return self._instant

    def wall(self) -> datetime:
        """The time of day, aware, in UTC."""
        return self._epoch + timedelta(seconds=self._instant)

    def attach(self, queue: Attached) -> None:
        """Have `advance` see to this queue; a queue with this clock attaches itself."""
        self._queues.add(queue)

    def wait(self, bell: Bell, until: float, at_most: float = inf, who: object = None) -> bool:
        """Block this thread until the bell rings (True), the clock is moved there, or `at_most` real seconds have passed."""
        with self._lock:
            if until <= self._instant:
                return False
            self._sleepers[bell] = _Sleeper(until, who, bell.ring, lambda: bell.has_rung)
        self._ring()
        rang = bell.wait(at_most)
        with self._lock:
            del self._sleepers[bell]
        self._ring()
        return rang

    def _steps(self, by: Seconds | str) -> Generator[bool, bool, None]:
        """Move on, step by step: yields True to wait for a change, and is told whether there was one in time.

        Yields False to let go on what can at once: on asyncio, what was cancelled is broken off in the loop's next turn.

        Written once for both clocks: one sleeps between two steps, the other awaits.
        """
        target = self._instant + to_seconds(by)
        undo = [queue._watch(self._ring) for queue in list(self._queues)]
        try:
            earlier = self._busy()
            yield False
            while True:
                while busy := self._busy() - self._stragglers:
                    if not (yield True):
                        self._stragglers |= {run for run in busy if run in earlier or self._has_deadline(run)}
                next_at = self._next_at()
                if next_at > target:
                    break
                with self._lock:
                    self._instant = float(max(self._instant, next_at))
                self._stragglers = {run for run in self._stragglers if _deadline_of(run) > self._instant}
                self._fire()
            with self._lock:
                self._instant = target
        finally:
            self._stragglers &= self._busy()
            for unwatch in undo:
                unwatch()

    def _has_deadline(self, run: object) -> bool:
        """Will the clock itself end this run, whatever it waits for?"""
        return False

    def _next_at(self) -> float:
        with self._lock:
            sleepers = [
                each.until for each in self._sleepers.values() if each.run is not None and not each.is_woken()
            ]
        return min([inf, *sleepers, *(queue._next_alarm_at() for queue in list(self._queues))])

    def _fire(self) -> None:
        """Wake all that has come due."""
        with self._lock:
            due = [each for each in self._sleepers.values() if each.until <= self._instant]
        for sleeper in due:
            sleeper.ring()
        for queue in list(self._queues):
            queue._poll()

    def _busy(self) -> set[object]:
        """What is under way and does not wait for the clock."""
        unfinished = set[object]().union(*(queue._unfinished() for queue in list(self._queues)))
        with self._lock:
            sleepers = list(self._sleepers.values())
        woken = {sleeper.run for sleeper in sleepers if sleeper.is_woken()}  # who have not gone on yet
        return unfinished - ({sleeper.run for sleeper in sleepers} - woken)


class ManualClock(_Manual):
    """A clock for the thread queue that moves only by `advance`."""

    def __init__(self, start: datetime | None = None) -> None:
        super().__init__(start)
        self._bell = Bell()
        self._ring = self._bell.ring
        self._advancing = threading.Lock()

    def advance(self, by: Seconds | str) -> None:
        """Move on by seconds, a timedelta or a text such as "3 days"; run all that comes due, in order."""
        with self._advancing:
            steps = self._steps(by)
            try:
                waits = next(steps)
                while True:
                    waits = steps.send(self._bell.wait(_PATIENCE if waits else 0))
            except StopIteration:
                pass


class AsyncManualClock(_Manual):
    """A clock for the asyncio queue that moves only by `await advance(...)`."""

    def __init__(self, start: datetime | None = None) -> None:
        super().__init__(start)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def advance(self, by: Seconds | str) -> None:
        """Move on by seconds, a timedelta or a text such as "3 days"; run all that comes due, in order."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()
        self._ring = lambda: loop.call_soon_threadsafe(changed.set)
        steps = self._steps(by)
        try:
            waits = next(steps)
            while True:
                waits = steps.send(await _in_time(changed) if waits else await asyncio.sleep(0, True))
        except StopIteration:
            pass
        finally:
            steps.close()
            self._ring = lambda: None

    async def sleep(self, seconds: Seconds) -> None:
        """Wait for the clock in a coroutine."""
        until = self._instant + duration("seconds", seconds)
        if until <= self._instant:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()

        def ring() -> None:
            if not woken.done():
                woken.set_result(None)

        worker = working.get(None)
        run = asyncio.current_task() if worker is None or worker.run is None else worker.run
        self._sleepers[woken] = _Sleeper(until, run, ring, woken.done)
        self._ring()
        try:
            await woken
        finally:
            del self._sleepers[woken]
            self._ring()

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        """Nothing: `advance` looks after the queues itself."""
        return _NoAlarm()

    def _has_deadline(self, run: object) -> bool:
        return _deadline_of(run) < inf


class _NoAlarm:
    def cancel(self) -> None:
        pass


async def _in_time(changed: asyncio.Event) -> bool:
    """Was there a change before the patience was over?"""
    try:
        async with asyncio.timeout(_PATIENCE):
            await changed.wait()
    except TimeoutError:
        return False
    changed.clear()
    return True


def _deadline_of(run: object) -> float:
    """When the clock ends what a run waits for: its deadline, or that of the hook it is in."""
    return float(getattr(getattr(run, "worker", None), "limit_at", getattr(run, "_until", inf)))


def to_seconds(by: Seconds | str) -> float:
    """Seconds, a timedelta, or a text: "90 s", "5 min", "2 hours", "3 days"."""
    if not isinstance(by, str):
        return duration("by", by)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", by)
    unit = _UNITS.get(found[2] or "s") if found else None
    if not found or unit is None:
        raise BadFieldsError(
            f"by must be seconds, a timedelta or a text such as '90 s' or '3 days', "
            f"in one of {', '.join(_UNITS)}, got {by!r}"
        )
    return float(found[1]) * unit
