"""Counters: what a work queue counts and measures of itself."""

from __future__ import annotations

from ..metrics import Histogram, HistogramSnapshot


class Counters:
    """Counters since the queue was made, and two histograms unless it is told not to measure."""

    __slots__ = (
        "_slowly_added",
        "_wait_batch",
        "_waits",
        "_work_batch",
        "_works",
        "added",
        "done",
        "dropped",
        "failed",
        "panicked",
        "retried",
    )

    def __init__(self, *, measures: bool) -> None:
        self.added = self.done = self.failed = self.retried = self.dropped = self.panicked = 0
        self._slowly_added = 0  # of these, not by the fast path, which counts one thing only
        self._waits = Histogram() if measures else None
        self._works = Histogram() if measures else None
        self._wait_batch = self._waits.batch if self._waits is not None else None
        self._work_batch = self._works.batch if self._works is not None else None

    @property
    def measures(self) -> tuple[HistogramSnapshot, HistogramSnapshot] | None:
        """How long envelopes were ready before they ran, and how long they ran; None if that is not measured."""
        if self._waits is None or self._works is None:
            return None
        return self._waits.snapshot(), self._works.snapshot()

    def _fold(self) -> None:
        if self._waits is not None and self._works is not None:
            self._waits.fold()
            self._works.fold()
