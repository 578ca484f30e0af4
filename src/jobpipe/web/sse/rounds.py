"""Rounds: what happens is gathered, and passed on as the same bytes to all clients, in a share of the loop's time.

A round costs something for each client. So it goes from turn to turn of the loop, each of them followed by a rest that keeps
the share; what happens meanwhile is gathered for the next round. Only where a round would take too long so, rests are
shorter. All of it runs on the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from .piece import EventsPiece, Frame, pieces_of

SHARE = 0.05
"""Of the loop's time, what rounds take as long as they can."""
LONGEST_TURN = 0.005
"""Seconds after which others have their turn."""
LONGEST_ROUND = 1.0
"""Seconds in which all are told, unless it takes longer without any rest. What just missed a round waits for the next."""
MOST_GATHERED = 4_000
"""Events for the next round from which on this one does without rests."""


class Taker(Protocol):
    def take(self, piece: EventsPiece) -> None:
        """Get what is new."""


class Timer(Protocol):
    def cancel(self) -> None: ...


def _call_later(delay: float, callback: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(delay, callback)


class Rounds:
    """What is gathered, and how far the round is."""

    def __init__(
        self,
        takers: Iterable[Taker],
        clock: Callable[[], float] = time.perf_counter,
        call_later: Callable[[float, Callable[[], None]], Timer] = _call_later,
    ) -> None:
        self._takers = takers
        self._clock = clock
        self._call_later = call_later
        self._gathered: list[Frame] = []
        self._pieces: list[EventsPiece] = []
        self._begun_at = 0.0
        self._left: deque[Taker] = deque()
        """Who has yet to get the pieces."""
        self._resting: Timer | None = None
        """There after each turn until the next may be."""

    def gather(self, frames: list[Frame]) -> None:
        """Have them passed on as soon as may be: at once, if there was nothing to do."""
        self._gathered += frames
        if self._resting is None:
            self._go_on()

    def flush(self) -> None:
        """Pass on at once all that there is."""
        self._pass_on()
        if self._gathered:
            self._begin()
            self._pass_on()

    def forget(self) -> None:
        """Drop all that there is."""
        self._gathered, self._pieces = [], []
        self._left.clear()
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    def _begin(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._pieces = pieces_of(gathered)
        self._left.extend(self._takers)
        self._begun_at = self._clock()

    def _go_on(self) -> None:
        """Have a turn, and rest from it."""
        self._resting = None
        if not self._left:
            self._pieces = []
            if not self._gathered:
                return
            self._begin()
        before = len(self._left)
        took = self._pass_on(LONGEST_TURN)
        self._resting = self._call_later(self._rest(took, before), self._go_on)

    def _rest(self, took: float, before: int) -> float:
        """Seconds to rest from a turn that took so many, and before which so many were left."""
        if len(self._gathered) >= MOST_GATHERED:
            return 0.0
        told = before - len(self._left)
        time_left = self._begun_at + LONGEST_ROUND - (self._clock() - took)
        return max(min(took / SHARE, time_left * told / max(before, 1)) - took, 0.0)

    def _pass_on(self, limit: float = float("inf")) -> float:
        """Go from one to the next until the time is over; how long it took."""
        began, took = self._clock(), 0.0
        while self._left and took < limit:
            taker = self._left.popleft()
            for piece in self._pieces:
                taker.take(piece)
            took = self._clock() - began
        return took
