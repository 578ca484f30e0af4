"""BlockClock: the manual clock of a block, for the runner and its store alike."""

from __future__ import annotations

import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

from rate_envelope_queue import BadFieldsError
from rate_envelope_queue.testing import AsyncManualClock, to_seconds

from ...errors import BadInputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PATIENCE = 5
"""Looks, a second apart, at a run that has a deadline and waits for something other than the clock; then its time is over."""


class BlockClock(AsyncManualClock):
    """A clock whose instants are seconds since the epoch, so that what the store notes is to the letter when it comes due."""

    def __init__(self, start: datetime | None) -> None:
        if start is not None and (not isinstance(start, datetime) or start.utcoffset() is None):
            raise BadInputError("start", f"must be an aware datetime, got {start!r}")
        super().__init__(_EPOCH)
        self._instant = time.time() if start is None else start.timestamp()
        self._looks: Counter[object] = Counter()
        self.inline_until: float | None = None
        """Where nobody else can move the clock while a plain function waits for it: how far that moves it itself."""
        self.moves = False
        """Is it being advanced?"""

    def wait(self, bell: Any, until: float, at_most: float = inf, who: object = None) -> bool:
        """Block this thread until the clock is moved there; where nobody else can, move it."""
        if self.inline_until is None:
            return super().wait(bell, until, at_most, who)
        if until > self.inline_until:
            raise RuntimeError("the handler waits for the clock, which stands still: advance it so far")
        return self.move(bell, until)

    def move(self, bell: Any, until: float) -> bool:
        """Be at that instant, unless the bell has rung."""
        if not bell.has_rung:
            self.move_to(until)
        return bool(bell.has_rung)

    def move_to(self, until: float) -> None:
        """Be at that instant, unless it is past; what comes due meanwhile is not seen to."""
        self._instant = max(self._instant, until)

    def _has_deadline(self, run: object) -> bool:
        """Will the clock itself end this run? Why not at once: on a busy machine a query may take a second, too."""
        self._looks[run] += self.moves and super()._has_deadline(run)
        return self._looks[run] >= _PATIENCE


class MovedByWaiting:
    """The same clock for a handler that a test calls directly: who waits for it moves it."""

    def __init__(self, clock: BlockClock) -> None:
        self._clock = clock
        self.now, self.wall, self.tick = clock.now, clock.wall, clock.tick

    def wait(self, bell: Any, until: float, at_most: float = inf, who: object = None) -> bool:
        """Move the clock there."""
        return self._clock.move(bell, until)


def seconds_by(by: float | timedelta | str) -> float:
    """How far to advance: seconds, a timedelta or a text such as "1 hour"; BadInputError."""
    try:
        return to_seconds(by)
    except BadFieldsError as error:
        raise BadInputError("by", str(error).removeprefix("by ")) from None
