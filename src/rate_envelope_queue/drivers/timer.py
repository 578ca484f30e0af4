"""Timer: the thread of the thread queue that waits for what comes due.

It wakes a worker, has stuck ones replaced, and is the insurance against a lost wake-up. What comes due soon, an idle
worker waits for itself: where ticks come one after the other, it would cost more to have the timer wake a worker
for each.
"""

from __future__ import annotations

from math import inf
from time import sleep
from typing import TYPE_CHECKING, Any

from ..clock import Bell
from ..core.pool import INSURANCE, Worker

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from ..clock import Clock
    from ..core.pool import Pool
    from ..core.workqueue import WorkQueue

_SOON = 0.01
"""Seconds: for what comes due so soon, an idle worker waits itself."""


class Timer:
    """The alarm, from a start to its stop. Methods marked * are called with the lock held.

    Why not the queue's: a timer that slept through a stop must not change what the next start waits for.
    """

    __slots__ = ("_clock", "_core", "_lock", "_pool", "alarm_at", "bell", "has_ended", "worker_wakes_at")

    def __init__(self, core: WorkQueue, pool: Pool[Any], lock: threading.Lock, clock: Clock) -> None:
        self._core = core
        self._pool = pool
        self._lock = lock
        self._clock = clock
        self.bell = Bell()
        self.alarm_at = inf  # when the timer looks by itself
        self.worker_wakes_at = inf  # for which instant an idle worker waits itself
        self.has_ended = False  # is another one in its place?

    def run(self, look: Callable[[float], float], do_requests: Callable[[], None]) -> None:
        """The thread: look (with the lock held) when something comes due; `look` says when it has to look again."""
        clock = self._clock
        while True:
            do_requests()
            with self._lock:
                if self.has_ended or not self._pool.workers:
                    return
                now = clock.now()
                # Why before it looks: a hook begins without the lock, and has to ring if it was not seen.
                self.alarm_at = inf
                look_at = look(now)
                next_due = self._core.next_due
                # Why: busy workers see for themselves what comes due, and so does one that waits for it.
                if self._pool.idle and next_due < self.worker_wakes_at:
                    look_at = min(look_at, next_due)
                self.alarm_at = max(look_at, now + clock.tick)
            if clock.wait(self.bell, self.alarm_at, INSURANCE):
                self.alarm_at = -inf
                sleep(clock.tick)  # what rings or comes due meanwhile is seen to at one go

    def set_alarm(self) -> None:
        """* Look when the next envelope comes due, unless a worker does."""
        due = self._core.next_due
        if self._pool.idle and due < self.alarm_at and due < self.worker_wakes_at:
            self.bell.ring()


class ThreadWorker(Worker):
    """A worker thread."""

    __slots__ = ("bell", "timer", "wakes_at")

    def __init__(self, timer: Timer) -> None:
        super().__init__()
        self.timer = timer
        self.bell = Bell()
        self.wakes_at = inf  # when it looks by itself, while it is idle

    @property
    def limit_at(self) -> float:
        """When it is stuck: at the deadline of what it runs, or when the budget of a reporting hook is spent."""
        run = self.run
        if run is None or self.is_stuck:
            return inf
        report = run.report  # Why once: the worker may take it away meanwhile
        return run._until if report is None else report._until

    def ring(self) -> None:
        self.clear_alarm()
        self.bell.ring()

    def set_alarm(self, now: float, due: float, tick: float) -> None:
        """* Wait for the next envelope itself, if it comes due soon and no other worker waits for it."""
        if due < now + _SOON and self.timer.worker_wakes_at == inf and tick > 0:
            self.timer.worker_wakes_at = due
            self.wakes_at = max(due, now + tick)

    def clear_alarm(self) -> None:
        """* It waits for no instant any more, so that the timer or another worker has to."""
        if self.wakes_at != inf:
            self.wakes_at = self.timer.worker_wakes_at = inf
