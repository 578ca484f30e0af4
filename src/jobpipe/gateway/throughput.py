"""Throughput: jobs a second that came to have each status, from totals that are noted now and then.

The one sampler of the tallies: what has happened between two samples goes to the history.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable
from math import ceil

from ..model.counts import Counts
from ..model.job import FINISHED, JobStatus
from .history import History

_WINDOW = 10.0
"""Seconds over which a pace is measured."""
_UNKNOWN = 5
_LONGEST = 300


_Sample = tuple[float, dict[tuple[str, str, JobStatus], int]]
"""When, and the totals by queue, type and status. Why by type: those of one may be forgotten while the queue goes on."""


class Throughput:
    """Keeps the totals of the last seconds; `note` may come from any one thread, reading from others."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._now = now
        self._samples: deque[_Sample] = deque(maxlen=64)
        self.history = History(wall)
        """What the pace was in the last minutes."""

    def note(self, counts: Counts) -> None:
        """Take a look at the totals."""
        now = self._now()
        sample = now, {(each.queue, each.type, each.status): each.total for each in counts.tallies}
        if self._samples:
            self.history.add(counts, _rates(self._samples[-1], sample))
        while self._samples and self._samples[0][0] < now - _WINDOW:
            self._samples.popleft()
        self._samples.append(sample)

    def per_second(self, queue: str | None = None) -> dict[JobStatus, float]:
        """How many jobs a second came to have each status, in a queue or in all."""
        samples = list(self._samples)
        found = dict.fromkeys(JobStatus, 0.0)
        for (name, status), rate in _rates(samples[0], samples[-1]).items() if samples else ():
            if queue in (None, name):
                found[status] += rate
        return found

    def seconds_for(self, places: int, queue: str) -> int:
        """Seconds until that number of jobs will have left the queue, at the present pace."""
        pace = self.per_second(queue)
        drained = sum(pace[status] for status in FINISHED)
        return min(max(ceil(places / drained), 1), _LONGEST) if drained > 0 else _UNKNOWN


def _rates(first: _Sample, last: _Sample) -> dict[tuple[str, JobStatus], float]:
    """Jobs a second between two samples, by queue and status."""
    found: defaultdict[tuple[str, JobStatus], float] = defaultdict(float)
    span = max(last[0] - first[0], 1e-3)
    for key, total in last[1].items():
        # Why not below 0: a lane that was forgotten meanwhile counts from 0 again.
        found[key[0], key[2]] += max(total - first[1].get(key, 0), 0) / span
    return found
