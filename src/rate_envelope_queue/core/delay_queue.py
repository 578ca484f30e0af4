"""DelayQueue: the delayed envelopes, in order of time; those of one instant in order of arrival.

Those that are entered in order of time are in a sorted list. For the others there is a heap of instants, and for each
instant what is due then: nearly always one envelope. An instant from which all was removed stays in
the heap as a tombstone; tombstones never outnumber the rest. Of one instant, what is in the list came first.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from ..envelope import Envelope, identity_of
from .sorted_list import SortedList

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

_FEW = 64


class Due(float):
    """The instant at which a delayed envelope becomes ready."""

    __slots__ = ()


class DelayQueue:
    """What becomes ready when."""

    __slots__ = ("_at", "_heap", "_out_of_order", "_size", "_sorted", "_tombstones", "next_at")

    def __init__(self) -> None:
        self._sorted = SortedList()
        self._out_of_order = 0  # how many in a row were too early for the sorted list
        self._heap: list[Due] = []  # holds every key of _at, and the tombstones
        self._at: dict[Due, Envelope[Any] | dict[Hashable, Envelope[Any]]] = {}  # no dict is empty
        self._tombstones = 0
        self._size = 0  # of what is in the heap
        self.next_at: float = inf
        """No envelope is due before; infinity when there is none."""

    def __len__(self) -> int:
        return self._size + len(self._sorted)

    def __iter__(self) -> Iterator[Envelope[Any]]:
        """All, in the order in which they would come due."""
        for _, found in sorted([*self._sorted, *self._at.items()], key=lambda entry: entry[0]):
            if isinstance(found, dict):
                yield from found.values()
            else:
                yield found

    def add(self, identity: Hashable, envelope: Envelope[Any], due: Due) -> None:
        """Enter it; its identity must not be in."""
        if due > self._sorted.last_at and not (self._at and due in self._at):
            self._sorted.append(due, envelope)
            self._out_of_order = 0
        else:
            self._add_to_heap(identity, envelope, due)
            self._out_of_order += 1
            if self._out_of_order > _FEW:
                self._clear_last()
        if due < self.next_at:
            self.next_at = due

    def _add_to_heap(self, identity: Hashable, envelope: Envelope[Any], due: Due) -> None:
        found = self._at.setdefault(due, envelope)
        if found is envelope:
            heappush(self._heap, due)
        elif isinstance(found, dict):
            found[identity] = envelope
        else:
            self._at[due] = {identity_of(found): found, identity: envelope}
        self._size += 1

    def _clear_last(self) -> None:
        """Move the last one from the list to the heap, if it keeps others out of it.

        Why: one that waits for hours would keep out those that come and go in an instant.
        """
        last_at = self._sorted.last_at
        if self._sorted and last_at not in self._at:
            envelope = self._sorted.pop_last()
            self._add_to_heap(identity_of(envelope), envelope, Due(last_at))

    def remove(self, identity: Hashable, due: Due) -> Envelope[Any]:
        """Take it out before its time."""
        found = self._at.get(due)
        if isinstance(found, dict) and identity in found:
            envelope = found.pop(identity)
            if not found:
                self._drop_instant(due)
        elif isinstance(found, Envelope) and identity_of(found) == identity:
            envelope = found
            self._drop_instant(due)
        else:
            envelope = self._sorted.remove(identity, due)
            self._find_next()
            return envelope
        self._size -= 1
        return envelope

    def pop_due(self, now: float) -> list[Envelope[Any]]:
        """Take out all that is due, in order."""
        ready: list[Envelope[Any]] = []
        heap, in_order = self._heap, self._sorted
        while heap and heap[0] <= now:
            due = heappop(heap)
            if in_order.next_at <= due:
                ready += in_order.pop_due(due)
            found = self._at.pop(due, None)
            if found is None:
                self._tombstones -= 1
                continue
            if isinstance(found, dict):
                ready.extend(found.values())
                self._size -= len(found)
            else:
                ready.append(found)
                self._size -= 1
        if in_order.next_at <= now:
            ready += in_order.pop_due(now)
        self._compact()
        self._find_next()
        return ready

    def _drop_instant(self, due: Due) -> None:
        del self._at[due]
        self._tombstones += 1
        self._compact()
        if due <= self.next_at:
            self._find_next()

    def _compact(self) -> None:
        if self._tombstones > _FEW and self._tombstones * 2 > len(self._heap):
            self._heap = list(self._at)
            heapify(self._heap)
            self._tombstones = 0

    def _find_next(self) -> None:
        heap = self._heap
        while heap and heap[0] not in self._at:
            heappop(heap)
            self._tombstones -= 1
        self.next_at = min(self._sorted.next_at, heap[0] if heap else inf)
