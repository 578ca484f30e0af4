"""History: what the last minutes looked like, a moment a second, so that a chart has a past when it is opened.

It is made from the same tallies as the pace, in every process that looks at them, and is as long as it is wide:
so many moments of the whole, and fewer of each queue.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import datetime
from typing import Any

from msgspec import Struct

from ..model.counts import Counts
from ..model.job import FINISHED, JobStatus, instant

LENGTH = 300
"""Moments of the whole."""
QUEUE_LENGTH = 60
"""Moments of a queue."""
MOST_QUEUES = 100
"""Queues that have a history: those with the most unfinished jobs."""


class Moment(Struct, frozen=True, kw_only=True, gc=False):
    """How many unfinished jobs there were, and how many a second came to an end since the moment before."""

    scheduled: int = 0
    queued: int = 0
    running: int = 0
    done: float = 0.0
    failed: float = 0.0
    cancelled: float = 0.0


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
    waiting: list[int]
    """Scheduled and queued jobs."""
    done: list[float]
    """A second."""


class Past(Struct, frozen=True, kw_only=True):
    """Counts and rates of the last minutes, newest last, in all and by queue."""

    moments: list[TimedMoment]
    queues: list[QueuePast]


_Totals = dict[str, dict[JobStatus, int]]


class History:
    """Keeps the last moments; `note` and the rest may be called from any thread."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time
    ) -> None:
        self._now = now
        self._wall = wall
        self._lock = threading.Lock()
        self._moments: deque[TimedMoment] = deque(maxlen=LENGTH)
        self._queues: dict[str, deque[QueueMoment]] = {}
        self._before: tuple[float, _Totals] | None = None
        """When it last looked, and what had come to an end by then."""

    def note(self, counts: Counts) -> None:
        """Take a look at the tallies."""
        now, at = self._now(), instant(self._wall())
        current: _Totals = {name: {} for name in counts.paused}
        ever: _Totals = {}
        for tally in counts.tallies:
            _add(current, tally.queue, tally.status, tally.count)
            if tally.status in FINISHED:
                _add(ever, tally.queue, tally.status, tally.total)
        with self._lock:
            before, self._before = self._before, (now, ever)
            if before is None:
                return
            span, past = max(now - before[0], 1e-3), before[1]
            seen = [
                QueueMoment(
                    name=name, paused=name in counts.paused, **_numbers(found, ever, past, name, span)
                )
                for name, found in current.items()
            ]
            self._moments.append(TimedMoment(at=at, **_sums(seen)))
            self._keep(seen)

    def _keep(self, seen: list[QueueMoment]) -> None:
        if len(seen) > MOST_QUEUES:
            seen = sorted(seen, key=lambda each: -(each.scheduled + each.queued + each.running))[:MOST_QUEUES]
        kept = {each.name: self._queues.get(each.name, deque(maxlen=QUEUE_LENGTH)) for each in seen}
        for each in seen:
            kept[each.name].append(each)
        self._queues = dict(sorted(kept.items()))

    def past(self) -> Past:
        """All that it remembers."""
        with self._lock:
            queues = [
                QueuePast(
                    name=name,
                    waiting=[each.scheduled + each.queued for each in moments],
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
            newest = self._moments[-1]
            fields = {name: getattr(newest, name) for name in newest.__struct_fields__}
            return Pulse(**fields, queues=[moments[-1] for moments in self._queues.values()])


def _add(totals: _Totals, queue: str, status: JobStatus, number: int) -> None:
    found = totals.setdefault(queue, {})
    found[status] = found.get(status, 0) + number


def _numbers(
    found: dict[JobStatus, int], ever: _Totals, past: _Totals, queue: str, span: float
) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for status in JobStatus:
        if status in FINISHED:
            # Why not below 0: the store may have been emptied meanwhile.
            ended = ever.get(queue, {}).get(status, 0) - past.get(queue, {}).get(status, 0)
            numbers[status.value] = round(max(ended, 0) / span, 2)
        else:
            numbers[status.value] = found.get(status, 0)
    return numbers


def _sums(seen: list[QueueMoment]) -> dict[str, Any]:
    sums = {status.value: sum(getattr(each, status) for each in seen) for status in JobStatus}
    return {name: round(value, 2) for name, value in sums.items()}
