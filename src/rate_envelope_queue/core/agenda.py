"""Agenda: the delayed envelopes, in order of time; those of one instant in order of arrival.

A heap of instants, and for each instant what is due then: nearly always one envelope, so that a
delayed envelope costs a heap slot and a dictionary entry. An instant from which all was removed stays
in the heap as a husk; husks never outnumber the rest.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from ..envelope import Envelope, identity_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

_FEW = 64


class Due(float):
    """The instant at which a delayed envelope becomes ready."""

    __slots__ = ()


class Agenda:
    """What becomes ready when."""

    __slots__ = ("_at", "_heap", "_husks", "_size", "next_at")

    def __init__(self) -> None:
        self._heap: list[Due] = []  # holds every key of _at, and the husks
        self._at: dict[Due, Envelope[Any] | dict[Hashable, Envelope[Any]]] = {}  # no dict is empty
        self._husks = 0
        self._size = 0
        self.next_at: float = inf
        """No envelope is due before; infinity when there is none."""

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Envelope[Any]]:
        """All, in the order in which they would come due."""
        for due in sorted(self._at):
            found = self._at[due]
            if isinstance(found, dict):
                yield from found.values()
            else:
                yield found

    def add(self, identity: Hashable, envelope: Envelope[Any], due: Due) -> None:
        """Enter it; its identity must not be in."""
        found = self._at.setdefault(due, envelope)
        if found is envelope:
            heappush(self._heap, due)
            if due < self.next_at:
                self.next_at = due
        elif isinstance(found, dict):
            found[identity] = envelope
        else:
            self._at[due] = {identity_of(found): found, identity: envelope}
        self._size += 1

    def remove(self, identity: Hashable, due: Due) -> Envelope[Any]:
        """Take it out before its time."""
        found = self._at[due]
        if isinstance(found, dict):
            envelope = found.pop(identity)
            if not found:
                self._drop_instant(due)
        else:
            envelope = found
            self._drop_instant(due)
        self._size -= 1
        return envelope

    def pop_due(self, now: float) -> list[Envelope[Any]]:
        """Take out all that is due, in order."""
        ready: list[Envelope[Any]] = []
        heap = self._heap
        while heap and heap[0] <= now:
            found = self._at.pop(heappop(heap), None)
            if found is None:
                self._husks -= 1
            elif isinstance(found, dict):
                ready.extend(found.values())
            else:
                ready.append(found)
        self._size -= len(ready)
        if self._husks:
            self._shed_husks()
            self._find_next()
        else:
            self.next_at = heap[0] if heap else inf
        return ready

    def _drop_instant(self, due: Due) -> None:
        del self._at[due]
        self._husks += 1
        self._shed_husks()
        if due <= self.next_at:
            self._find_next()

    def _shed_husks(self) -> None:
        if self._husks > _FEW and self._husks * 2 > len(self._heap):
            self._heap = list(self._at)
            heapify(self._heap)
            self._husks = 0

    def _find_next(self) -> None:
        heap = self._heap
        while heap and heap[0] not in self._at:
            heappop(heap)
            self._husks -= 1
        self.next_at = heap[0] if heap else inf
