"""Pool: which workers there are, which of them sleep, and which to wake. The driver says how.

A worker is woken only when there is something to run and no other has been woken that has not looked yet; one
that finds more than it takes wakes the next. So a burst wakes one worker at a time, and costs few switches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from .lifecycle import Event, QueueState

if TYPE_CHECKING:
    from .run import Run
    from .workqueue import WorkQueue

INSURANCE = 10.0
"""Seconds after which a queue looks for work by itself, so that a lost wake-up cannot strand any."""


class Worker(ABC):
    """One worker: what it runs, and whether it may take more."""

    __slots__ = ("is_retired", "is_stuck", "run")

    def __init__(self) -> None:
        self.run: Run | None = None
        self.is_retired = False  # it takes nothing more
        self.is_stuck = False  # it was replaced while it ran

    @abstractmethod
    def ring(self) -> None:
        """Wake it."""


W = TypeVar("W", bound=Worker)


class Pool(Generic[W]):
    """The workers of one queue. Not thread-safe: the driver holds its lock."""

    __slots__ = ("_queue", "idle", "is_waking", "workers")

    def __init__(self, queue: WorkQueue) -> None:
        self._queue = queue
        self.workers: list[W] = []  # all that have not ended
        self.idle: list[W] = []  # of these, asleep; the last fell asleep last
        self.is_waking = False  # was one woken that has not looked yet?

    @property
    def stuck(self) -> int:
        """How many were replaced and still run."""
        return sum(worker.is_stuck for worker in self.workers)

    def wake(self, now: float) -> None:
        """Wake a worker, if one sleeps and there is work for it."""
        if self.idle and not self.is_waking and self._queue.can_take(now):
            self.is_waking = True
            self.idle.pop().ring()

    def park(self, worker: W) -> bool:
        """A worker has nothing to take: it goes idle (True), or it ends because the queue does."""
        if worker.is_stuck and self._queue.has_work and self.stuck == len(self.workers):
            # The others have ended: no other worker is left to run it.
            worker.is_stuck = worker.is_retired = False
        if worker.is_retired or self._is_over():
            self.workers.remove(worker)
            self.retire_idle()
            return False
        self.idle.append(worker)
        return True

    def retire_idle(self) -> None:
        """Retire idle workers, once there is no more to do; the last one ends the stop."""
        if self._is_over():
            for worker in self.idle:
                self.workers.remove(worker)
                worker.is_retired = True
                worker.ring()
            self.idle.clear()
        if not self.workers:  # Why whatever there is to do: the last one may have been lost
            self._queue.apply(Event.ENDED)

    def _is_over(self) -> bool:
        return self._queue.state is not QueueState.RUNNING and not self._queue.has_work
