"""LoopAlarm: the one alarm of the asyncio queue, for the nearest due time or deadline; and the insurance timer."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..core.pool import INSURANCE

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ..clock import Alarm, LoopClock


class LoopAlarm:
    """Calls back on the loop; made at each start."""

    __slots__ = ("_alarm", "_alarm_at", "_clock", "_insurance", "_loop", "_poll")

    def __init__(self, clock: LoopClock, loop: asyncio.AbstractEventLoop, look: Callable[[], None]) -> None:
        self._clock = clock
        self._loop = loop
        self._poll = look
        self._alarm: Alarm | None = None
        self._alarm_at = inf
        self._insurance = loop.call_later(INSURANCE, self._poll_again)

    def set(self, when: float) -> None:
        """Look by then."""
        if when < self._alarm_at:
            at = max(when, self._clock.now() + self._clock.tick)
            if at >= self._alarm_at:
                return  # it rings soon enough, and must not be put off again and again
            self.clear()
            self._alarm_at = at
            self._alarm = self._clock.call_at(self._loop, at, self._poll)

    def clear(self) -> None:
        """Look no more, but for the insurance."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_at = None, inf

    def close(self) -> None:
        """Look no more."""
        self.clear()
        self._insurance.cancel()

    def _poll_again(self) -> None:
        self._insurance = self._loop.call_later(INSURANCE, self._poll_again)
        self._poll()
