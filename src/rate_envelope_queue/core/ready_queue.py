"""ReadyQueue: the ready envelopes, higher priority first, equal ones in order of arrival."""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..envelope import Envelope


class ReadyQueue:
    """A queue of queues, one for each priority in use."""

    __slots__ = ("_ranks", "ordinary", "priorities")

    def __init__(self) -> None:
        self.ordinary: deque[Envelope[Any]] = deque()
        """Those of priority 0. While there are no other `priorities`, these are all, and may be used directly."""
        self._ranks: dict[int, deque[Envelope[Any]]] = {}  # the others; none is empty
        self.priorities: list[int] = []
        """The other priorities in use, ascending."""

    def __len__(self) -> int:
        return len(self.ordinary) + sum(map(len, self._ranks.values()))

    def __bool__(self) -> bool:
        return bool(self.ordinary or self.priorities)

    def __iter__(self) -> Iterator[Envelope[Any]]:
        """All, in the order in which they would be taken."""
        above = [priority for priority in reversed(self.priorities) if priority > 0]
        below = [priority for priority in reversed(self.priorities) if priority < 0]
        for priority in above:
            yield from self._ranks[priority]
        yield from self.ordinary
        for priority in below:
            yield from self._ranks[priority]

    def append(self, envelope: Envelope[Any]) -> None:
        """Put it at the end of those with its priority."""
        priority = envelope._priority
        if priority == 0:
            self.ordinary.append(envelope)
        elif priority in self._ranks:
            self._ranks[priority].append(envelope)
        else:
            self._ranks[priority] = deque((envelope,))
            insort(self.priorities, priority)

    @property
    def first(self) -> Envelope[Any]:
        """The first; IndexError when there is none."""
        if not self.priorities or (self.priorities[-1] < 0 and self.ordinary):
            return self.ordinary[0]
        return self._ranks[self.priorities[-1]][0]

    def popleft(self) -> Envelope[Any]:
        """Take the first out; IndexError when there is none."""
        if not self.priorities or (self.priorities[-1] < 0 and self.ordinary):
            return self.ordinary.popleft()
        priority = self.priorities[-1]
        rank = self._ranks[priority]
        envelope = rank.popleft()
        if not rank:
            del self._ranks[priority]
            self.priorities.pop()
        return envelope

    def keep(self, wanted: Callable[[Envelope[Any]], bool]) -> None:
        """Take all others out."""
        kept = [envelope for envelope in self if wanted(envelope)]
        self.ordinary.clear()
        self._ranks.clear()
        self.priorities.clear()
        for envelope in kept:
            self.append(envelope)
