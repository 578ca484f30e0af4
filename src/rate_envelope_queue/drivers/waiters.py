"""Waiters: who waits for a queue, for what, and whom a change concerns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

Ring = Callable[[], object]
"""Wakes somebody who waits; may be called without need."""


class Waiters:
    """Four lines of rings. Not thread-safe: the driver holds its lock, and rings when it does not."""

    __slots__ = ("enders", "joiners", "senders", "there_are", "watchers")

    def __init__(self) -> None:
        self.senders: deque[Ring] = deque()
        """Wait for room; the first has the next turn."""
        self.joiners: deque[Ring] = deque()
        """Wait until nothing is ready or running."""
        self.enders: deque[Ring] = deque()
        """Wait until the workers have ended."""
        self.watchers: deque[Ring] = deque()
        """Want to know of every change."""
        self.there_are = False
        """Is anybody in one of these?"""

    def add(self, line: deque[Ring], ring: Ring) -> None:
        """Somebody waits in this line."""
        line.append(ring)
        self.there_are = True

    def remove(self, line: deque[Ring], ring: Ring) -> None:
        """Somebody no longer does."""
        line.remove(ring)
        self.there_are = bool(self.everybody())

    def everybody(self) -> list[Ring]:
        """All who wait for anything."""
        return [*self.senders, *self.joiners, *self.enders, *self.watchers]

    def concerned(self, *, is_quiet: Callable[[], bool], has_ended: bool) -> list[Ring]:
        """Whom a change concerns: the first who waits for room, and all whose wait is over."""
        rings = [*self.watchers]
        if self.senders:
            rings.append(self.senders[0])
        if self.joiners and is_quiet():
            rings += self.joiners
        if has_ended:
            rings += self.enders
        return rings


def ring_all(rings: Iterable[Ring]) -> None:
    """Wake them; called when the lock is not held."""
    for ring in rings:
        ring()
