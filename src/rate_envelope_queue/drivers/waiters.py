"""Waiters: which calls wait for a queue, for what, and which of them a change wakes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.backlog import Backlog
    from ..core.pool import Pool

Ring = Callable[[], object]
"""Wakes a waiting call; may be called without need."""


class Waiters:
    """Four lines of rings. Methods marked * are called with the lock held; rings are called without it."""

    __slots__ = ("_backlog", "_lock", "_pool", "has_any", "joiners", "senders", "stoppers", "watchers")

    def __init__(self, lock: AbstractContextManager[Any], backlog: Backlog, pool: Pool[Any]) -> None:
        self._lock = lock
        self._backlog = backlog
        self._pool = pool
        self.senders: deque[Ring] = deque()
        """Wait for room; the first has the next turn."""
        self.joiners: deque[Ring] = deque()
        """Wait until nothing is ready or running."""
        self.stoppers: deque[Ring] = deque()
        """Wait until the workers have ended."""
        self.watchers: deque[Ring] = deque()
        """Want to know of every change."""
        self.has_any = False
        """Is any call in one of these?"""

    def until(
        self, attempt: Callable[[Ring], bool], line: deque[Ring], ring: Ring
    ) -> Generator[None, None, None]:
        """Yield, to be resumed after a ring, until the attempt (made with the lock held) succeeds.

        Written once for both queues: one sleeps between two steps, the other awaits.
        """
        with self._lock:
            self._add(line, ring)
        try:
            while True:
                with self._lock:
                    if attempt(ring):
                        return
                yield
        finally:
            with self._lock:
                self._remove(line, ring)
                rings = self.to_wake()
            ring_all(rings)

    def watch(self, ring: Ring) -> Callable[[], None]:
        """Ring at each change, until the returned function is called."""
        with self._lock:
            self._add(self.watchers, ring)

        def unwatch() -> None:
            with self._lock:
                self._remove(self.watchers, ring)

        return unwatch

    def all(self) -> list[Ring]:
        """* All."""
        return [*self.senders, *self.joiners, *self.stoppers, *self.watchers]

    def to_wake(self) -> list[Ring]:
        """* Which to wake after a change: the first that waits for room, and all whose wait is over."""
        rings = [*self.watchers]
        if self.senders:
            rings.append(self.senders[0])
        if self.joiners and self._backlog.is_quiet:
            rings += self.joiners
        if not self._pool.workers:
            rings += self.stoppers
        return rings

    def _add(self, line: deque[Ring], ring: Ring) -> None:
        line.append(ring)
        self.has_any = True

    def _remove(self, line: deque[Ring], ring: Ring) -> None:
        line.remove(ring)
        self.has_any = bool(self.all())


def ring_all(rings: Iterable[Ring]) -> None:
    """Wake them; called when the lock is not held."""
    for ring in rings:
        ring()
