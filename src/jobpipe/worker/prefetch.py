"""Prefetch: how many jobs a runner claims ahead of its slots, and how long one may wait there.

As many as have ended here just now, so that slots never run dry; none while no job ends, since what is claimed ahead
is out of reach of other processes. It knows no store and no clock.
"""

from __future__ import annotations

from collections import deque
from math import inf

_WINDOW = 0.05
"""Seconds of work that may wait here for a slot: enough to never run dry, too little to be missed elsewhere."""
_LONGEST_AHEAD = 0.2
"""Seconds after which a job that waits here is given back, though others end."""
_MOST_AHEAD = 1_000
"""Jobs claimed beyond the slots, at the most."""
_TURNOVER = 0.01
"""Seconds since the last job ended in which another slot is likely to be free soon."""


class Prefetch:
    """The policy of one runner, with what it has seen of the pace of its jobs."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._ended_at: deque[float] = deque(maxlen=_MOST_AHEAD)  # of the jobs that ended within the window
        self._sent_at = -inf
        self.refill_at = slots
        """No more jobs than this in slots or ahead of them, and it is time to claim more."""
        self.has_more = True
        """May a claim find jobs, without any signal, as soon as there is room?"""

    def ended(self, now: float) -> None:
        """A job has ended."""
        self._ended_at.append(now)

    def sent(self, now: float) -> None:
        """Claimed jobs were handed to the slots. Why noted: to hand over many takes a while, in which none can end."""
        self._sent_at = now

    def room(self, held: int, now: float) -> int:
        """How many jobs to claim now, with `held` in slots or ahead of them: 0 while there is enough to do."""
        wanted = self._slots + self._ended_lately(now)
        self.refill_at = max(self._slots - 1, wanted // 2)
        return wanted - held if held <= self.refill_at else 0

    def is_low(self, held: int) -> bool:
        """Is it time to claim more, as far as there is more?"""
        return self.has_more and held <= self.refill_at

    def has_turnover(self, now: float) -> bool:
        """Has a slot become free just now?"""
        return bool(self._ended_at) and now - self._ended_at[-1] < _TURNOVER

    def stale_before(self, now: float) -> float:
        """Jobs that wait here since before this instant are to be given back."""
        is_moving = self._ended_lately(now) or now - self._sent_at < _WINDOW
        return now - (_LONGEST_AHEAD if is_moving else _WINDOW)

    def pause(self, held: int) -> float:
        """Seconds after which to look again whether some are stale."""
        return _WINDOW if held > self._slots else inf

    def _ended_lately(self, now: float) -> int:
        while self._ended_at and now - self._ended_at[0] >= _WINDOW:
            self._ended_at.popleft()
        return len(self._ended_at)
