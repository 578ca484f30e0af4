"""SortedList: delayed envelopes that were entered in order of time, as the ticks of one interval are.

Two lists side by side, sorted because the later is entered behind the earlier; what has come due is cut off the
front in one piece. So nothing has to be sorted or looked up. What is taken out elsewhere leaves a gap; gaps never
outnumber the rest by much.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from math import inf
from typing import TYPE_CHECKING, Any

from ..envelope import identity_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from ..envelope import Envelope
    from .delay_queue import Due

_FEW = 64


class SortedList:
    """At most one envelope for each instant; those after the last may be entered."""

    __slots__ = ("_dues", "_envelopes", "_first", "_gaps", "last_at", "next_at")

    def __init__(self) -> None:
        self._dues: list[float] = []  # ascending
        self._envelopes: list[Envelope[Any] | None] = []  # None: taken out
        self._first = 0  # where those begin that have not come due
        self._gaps = 0  # from there on; neither the first nor the last is one
        self.next_at: float = inf
        """The instant of the first; infinity when there is none."""
        self.last_at: float = -inf
        """The instant of the last."""

    def __len__(self) -> int:
        return len(self._dues) - self._first - self._gaps

    def __iter__(self) -> Iterator[tuple[float, Envelope[Any]]]:
        for due, envelope in zip(self._dues, self._envelopes, strict=True):
            if envelope is not None:
                yield due, envelope

    def append(self, due: Due, envelope: Envelope[Any]) -> None:
        """Enter it behind all others."""
        self._dues.append(due)
        self._envelopes.append(envelope)
        self.last_at = due
        if self.next_at is inf:
            self.next_at = due

    def pop_due(self, now: float) -> list[Envelope[Any]]:
        """Take out all that is due, in order."""
        dues, envelopes, first = self._dues, self._envelopes, self._first
        end = bisect_right(dues, now, first)
        popped = envelopes[first:end]
        if end * 2 < len(dues):
            # Why: what has left must not be kept alive, and to move up all the others each time would take long.
            envelopes[first:end] = [None] * len(popped)
            dues[first:end] = [-inf] * len(popped)
            self._first = end
        else:
            del dues[:end], envelopes[:end]
            self._first = 0
        if not self._gaps:
            self._find_ends()
            return popped  # type: ignore[return-value]  # there is no None in it
        found = [envelope for envelope in popped if envelope is not None]
        self._gaps -= len(popped) - len(found)
        self._tidy()
        return found

    def pop_last(self) -> Envelope[Any]:
        """Take out the last."""
        return self._take_out(len(self._dues) - 1)

    def remove(self, identity: Hashable, due: Due) -> Envelope[Any]:
        """Take it out before its time; KeyError if it is not there."""
        index = bisect_left(self._dues, due, self._first)
        if index < len(self._dues) and self._dues[index] == due:
            envelope = self._envelopes[index]
            if envelope is not None and identity_of(envelope) == identity:
                return self._take_out(index)
        raise KeyError(identity)

    def _take_out(self, index: int) -> Envelope[Any]:
        envelope = self._envelopes[index]
        assert envelope is not None
        self._envelopes[index] = None
        self._gaps += 1
        self._tidy()
        return envelope

    def _tidy(self) -> None:
        """Have no gaps at the ends, and few between."""
        dues, envelopes = self._dues, self._envelopes
        while len(dues) > self._first and envelopes[-1] is None:
            del dues[-1], envelopes[-1]
            self._gaps -= 1
        while len(dues) > self._first and envelopes[self._first] is None:
            self._first += 1
            self._gaps -= 1
        if self._gaps > _FEW and self._gaps > len(self):
            left = list(self)
            self._dues = [due for due, _ in left]
            self._envelopes = [envelope for _, envelope in left]
            self._first = self._gaps = 0
        self._find_ends()

    def _find_ends(self) -> None:
        if len(self._dues) > self._first:
            self.next_at, self.last_at = self._dues[self._first], self._dues[-1]
        else:
            self.next_at, self.last_at = inf, -inf
