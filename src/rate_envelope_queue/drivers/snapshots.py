"""Snapshots of a queue: its counters and measures, as the frozen values that users get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..metrics import Metrics
from ..stats import Stats

if TYPE_CHECKING:
    from ..core.workqueue import WorkQueue


def stats_of(core: WorkQueue, *, stuck: int) -> Stats:
    """What is in the queue now, and what it has counted."""
    return Stats(
        state=core.state,
        ready=core.backlog.ready,
        running=core.backlog.running,
        delayed=core.backlog.delayed,
        occupied=core.backlog.occupied,
        capacity=core.capacity,
        stuck=stuck,
        added=core.added,
        done=core.done,
        failed=core.failed,
        retried=core.retried,
        dropped=core.dropped,
        panicked=core.panicked,
    )


def metrics_of(core: WorkQueue, now: float, *, stuck: int) -> Metrics | None:
    """What the queue has measured; None if it measures nothing."""
    measures = core.measures
    if measures is None:
        return None
    ages = [now - run.began_at for run in core.backlog.runs()]
    return Metrics(
        adds=core.adds,
        depth=core.backlog.ready,
        queue_duration=measures[0],
        work_duration=measures[1],
        unfinished_seconds=sum(ages),
        longest_running_seconds=max(ages, default=0.0),
        retries=core.retried,
        capacity=core.capacity,
        occupied=core.backlog.occupied,
        dropped=core.dropped,
        stuck=stuck,
        panics=core.panicked,
        throttled=core.backlog.throttled,
    )
