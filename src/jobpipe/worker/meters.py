"""Meters: what a process has counted and timed of the jobs that it ran; no exporter."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container

BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0),
)
"""Upper bounds, in seconds."""


class Histogram:
    """How many observations fell into each bucket; the last has no bound."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    def observe(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds


class Meters:
    """The counters of a process; filled by its runner only."""

    def __init__(self) -> None:
        self.run_seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        """From begin to end of a run, by type."""
        self.wait_seconds: defaultdict[str, Histogram] = defaultdict(Histogram)
        """From when it could have run to its begin, by queue."""

    def forget_others(self, queues: Container[str], types: Container[str]) -> None:
        """Keep those of these names only: others have no jobs any more. May be called from any thread."""
        for found, names in ((self.run_seconds, types), (self.wait_seconds, queues)):
            for name in [name for name in list(found) if name not in names]:
                del found[name]
