"""History: what the last minutes looked like, a moment a second, so that a chart has a past when it is opened.

It keeps a number of moments of the whole, and fewer of each queue. `Throughput` takes the samples, in every process
that looks at the tallies.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..model.counts import Counts
from ..model.job import FINISHED, JobStatus, instant
from .views import queues_of

LENGTH = 300
"""Moments of the whole."""
QUEUE_LENGTH = 60
"""Moments of a queue."""
MOST_QUEUES = 100
"""Queues that have a history: those with the most unfinished jobs."""


class Moment(Struct, frozen=True, kw_only=True, gc=False):
    """How many unfinished jobs there were, and how many a second came to an end since the moment before."""

    scheduled: int = 0
    waiting: int = 0
    queued: int = 0
    running: int = 0
    done: float = 0.0
    failed: float = 0.0
    cancelled: float = 0.0
    expired: float = 0.0


class TimedMoment(Moment, frozen=True, kw_only=True, gc=False):
    """Counts and rates of all queues at one moment."""

    at: datetime


class QueueMoment(Moment, frozen=True, kw_only=True):
    """A moment of a queue."""

    name: str
    paused: bool


class Pulse(TimedMoment, frozen=True, kw_only=True):
    """A moment of the whole and of its queues."""

    queues: list[QueueMoment] = []


class QueuePast(Struct, frozen=True, kw_only=True):
    """Counts and rates of a queue in the last minute, newest last."""

    name: str
    pending: list[int]
    """Scheduled, waiting and queued jobs."""
    done: list[float]
    """A second."""


class Past(Struct, frozen=True, kw_only=True):
    """Counts and rates of the last minutes, newest last, in all and by queue."""

    moments: list[TimedMoment]
    queues: list[QueuePast]


class History:
    """Keeps the last moments; may be used from any thread."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._lock = threading.Lock()
        self._moments: deque[TimedMoment] = deque(maxlen=LENGTH)
        self._queues: dict[str, deque[QueueMoment]] = {}

    def add(self, counts: Counts, rates: Mapping[tuple[str, JobStatus], float]) -> None:
        """The tallies of now, and the jobs a second since the moment before, by queue and status."""
        # Why the largest first: there may be thousands of queues, and this is done every second.
        sums: dict[str, Any] = dict.fromkeys(JobStatus, 0)
        sizes: Counter[str] = Counter()
        for tally in counts.tallies:
            count = 0 if tally.status in FINISHED else tally.count
            sums[tally.status] += count
            sizes[tally.queue] += count
        for (_, status), rate in rates.items():
            if status in FINISHED:
                sums[status] += rate
        moment = TimedMoment(
            at=instant(self._wall()), **{name: round(each, 2) for name, each in sums.items()}
        )
        largest = {name for name, _ in sizes.most_common(MOST_QUEUES)}
        seen = [
            QueueMoment(
                **asdict(each)
                | {str(status): round(rates.get((each.name, status), 0.0), 2) for status in FINISHED}
            )
            for each in queues_of(replace(counts, tallies=[t for t in counts.tallies if t.queue in largest]))
        ]
        with self._lock:
            self._moments.append(moment)
            kept = {each.name: self._queues.get(each.name, deque(maxlen=QUEUE_LENGTH)) for each in seen}
            for each in seen:
                kept[each.name].append(each)
            self._queues = kept

    def past(self) -> Past:
        """All that it remembers."""
        with self._lock:
            queues = [
                QueuePast(
                    name=name,
                    pending=[each.scheduled + each.waiting + each.queued for each in moments],
                    done=[each.done for each in moments],
                )
                for name, moments in self._queues.items()
            ]
            return Past(moments=list(self._moments), queues=queues)

    def pulse(self) -> Pulse | None:
        """The newest moment; None before it has looked twice."""
        with self._lock:
            if not self._moments:
                return None
            queues = [moments[-1] for moments in self._queues.values()]
            return Pulse(**asdict(self._moments[-1]), queues=queues)
