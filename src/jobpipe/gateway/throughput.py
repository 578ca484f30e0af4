"""Throughput: jobs a second that came to have each status, from totals that are noted now and then."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import ceil

from ..model.counts import Counts
from ..model.job import FINISHED, JobStatus
from .history import History

_WINDOW = 10.0
"""Seconds over which a pace is measured."""
_UNKNOWN = 5
_LONGEST = 300


class Throughput:
    """Keeps the totals of the last seconds; `note` may come from any one thread, reading from others."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._samples: deque[tuple[float, dict[tuple[str, str, JobStatus], int]]] = deque(maxlen=64)
        """Totals by queue, type and status. Why by type: those of one may be forgotten while the queue goes on."""
        self.history = History(now)
        """What the pace was in the last minutes."""

    def note(self, counts: Counts) -> None:
        """Take a look at the totals."""
        self.history.note(counts)
        now = self._now()
        totals = {(each.queue, each.type, each.status): each.total for each in counts.tallies}
        while self._samples and self._samples[0][0] < now - _WINDOW:
            self._samples.popleft()
        self._samples.append((now, totals))

    def per_second(self, queue: str | None = None) -> dict[JobStatus, float]:
        """How many jobs a second came to have each status, in a queue or in all."""
        samples = list(self._samples)
        found = dict.fromkeys(JobStatus, 0.0)
        if len(samples) < 2:
            return found
        (began_at, first), (ended_at, last) = samples[0], samples[-1]
        span = max(ended_at - began_at, 1e-9)
        for key, total in last.items():
            if queue in (None, key[0]):
                # Why not below 0: a lane that was forgotten meanwhile counts from 0 again.
                found[key[2]] += max(total - first.get(key, 0), 0) / span
        return found

    def seconds_for(self, places: int, queue: str) -> int:
        """In how many seconds so many jobs will have left the queue, by the pace of late."""
        pace = self.per_second(queue)
        drained = sum(pace[status] for status in FINISHED)
        return min(max(ceil(places / drained), 1), _LONGEST) if drained > 0 else _UNKNOWN
