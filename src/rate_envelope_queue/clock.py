"""Time, injected: a queue asks its Clock and nothing else.

Instants are seconds of a monotonic clock, so that setting the wall clock moves nothing; the wall
clock is asked only by cron schedules. `testing.ManualClock` is the sibling that tests move by hand.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class Bell:
    """What one thread sleeps on until another rings; rung before or twice, it is one ring."""

    __slots__ = ("_lock", "has_rung")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.has_rung = False
        """Did it ever?"""

    def ring(self) -> None:
        """Wake the thread that sleeps on it, or that will."""
        self.has_rung = True
        try:
            self._lock.release()
        except RuntimeError:
            pass  # it rang already

    def wait(self, seconds: float = inf) -> bool:
        """Sleep until it rings (True), or for this many seconds (False)."""
        if seconds == inf:
            return self._lock.acquire()
        return self._lock.acquire(timeout=min(max(seconds, 0.0), threading.TIMEOUT_MAX))


class Alarm(Protocol):
    """A call that was ordered for later and can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Where a queue gets the time from and how it waits for an instant."""

    def now(self) -> float:
        """The monotonic instant, in seconds."""

    def wall(self) -> datetime:
        """The time of day, aware, in UTC."""

    @property
    def tick(self) -> float:
        """Alarms this many seconds apart may be one."""

    def wait(self, bell: Bell, until: float, at_most: float = inf, who: object = None) -> bool:
        """Block this thread until the bell rings (True), the instant has come or `at_most` real seconds have passed.

        `who` is the run that waits, for a clock that wants to know.
        """


class LoopClock(Clock, Protocol):
    """A clock for the asyncio queue, too."""

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        """Have the loop call back at the instant."""


class SystemClock:
    """The machine's own clocks."""

    # Why: the builtin itself, with no Python frame around it; it is called several times a run.
    now = staticmethod(time.monotonic)

    tick = 0.001

    def wall(self) -> datetime:
        """The time of day, aware, in UTC."""
        return datetime.now(UTC)

    def wait(self, bell: Bell, until: float, at_most: float = inf, who: object = None) -> bool:
        """Block this thread until the bell rings (True), the instant has come or `at_most` seconds have passed."""
        return bell.wait(min(until - time.monotonic(), at_most))

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        """Have the loop call back at the instant."""
        return loop.call_later(max(when - time.monotonic(), 0.0), callback)

    def __repr__(self) -> str:
        return "SystemClock()"
