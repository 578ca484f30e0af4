"""What a queue measures of itself: counters, gauges and two histograms, cheap enough to be always on.

A duration is noted by appending it to a list; sorting a whole batch into the buckets at once costs a
fraction of doing it one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

BUCKETS = tuple(10.0**power for power in range(-8, 2))
"""The upper bounds of client-go's duration histograms: 1e-8 … 10 seconds by tens."""
BATCH = 512
"""Durations sorted at once: with more, sorting takes longer for each; with fewer, the rest does."""


@dataclass(frozen=True, slots=True)
class HistogramSnapshot:
    """How many durations were at most as long as each bound, how many in all, and their sum."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    count: int
    sum: float


class Histogram:
    """Durations, counted by size. Not thread-safe: its owner holds a lock."""

    __slots__ = ("_counts", "_sum", "batch")

    def __init__(self) -> None:
        self.batch: list[float] = []
        """Noted and not yet counted: append here, and call `fold` when it has grown to BATCH."""
        # Of each bucket, not cumulative; the last is above all bounds.
        self._counts = [0] * (len(BUCKETS) + 1)
        self._sum = 0.0

    def fold(self) -> None:
        """Count what was noted."""
        batch = self.batch
        batch.sort()
        below = 0
        for bucket, bound in enumerate(BUCKETS):
            upto = bisect_right(batch, bound)
            self._counts[bucket] += upto - below
            below = upto
        self._counts[-1] += len(batch) - below
        self._sum += sum(batch)
        batch.clear()

    def snapshot(self) -> HistogramSnapshot:
        """What was noted so far, cumulative by bound."""
        self.fold()
        total, cumulative = 0, []
        for count in self._counts:
            total += count
            cumulative.append(total)
        return HistogramSnapshot(BUCKETS, tuple(cumulative[:-1]), total, self._sum)


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a queue has measured, at one moment."""

    adds: int
    """How often an envelope became ready: sent, by a tick or for a retry; not when it was collapsed."""
    depth: int
    """How many are ready."""
    queue_duration: HistogramSnapshot
    """Seconds from ready to running."""
    work_duration: HistogramSnapshot
    """Seconds of a run."""
    unfinished_seconds: float
    """The age of all that runs, added up."""
    longest_running_seconds: float
    retries: int
    """Retries and back-offs, not plain ticks."""
    capacity: int
    occupied: int
    dropped: int
    stuck: int
    panics: int
    throttled: int
    """How often an envelope was held back by the rate or the concurrency limit of its type."""
