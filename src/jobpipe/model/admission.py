"""Admission: how many more jobs a store takes, decided before anything is written.

Bounds are for those who put jobs in. What is there already is never refused: a retry, a job that comes due, an id that is
known. The rule is here once, for all stores in Python; `redis/lua/inserting.lua` says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from ..errors import QueueFullError, TooManyNamesError, TooManyScheduledError
from .newjob import NewJob

Lane = tuple[str, str]
"""Queue and type."""


class Bounds(NamedTuple):
    """What an insert heeds; 0 is no bound."""

    ready: int = 0
    """Queued jobs in a queue."""
    scheduled: int = 0
    """Scheduled jobs in the store."""
    names: int = 0
    """Lanes that have jobs."""


class Need(NamedTuple):
    """What new jobs would take."""

    ready: Counter[str]
    """By queue."""
    scheduled: Counter[str]
    """By queue."""
    lanes: set[Lane]


class Occupancy(Protocol):
    """What is taken, as far as somebody asks."""

    def ready(self, queue: str) -> int:
        """Queued jobs of the queue."""

    def scheduled(self) -> int:
        """Scheduled jobs of the store."""

    def has_lane(self, lane: Lane) -> bool:
        """Does it have a job, or bookkeeping from the last one?"""

    def lanes(self) -> int:
        """How many there are."""


def need_of(jobs: Iterable[tuple[NewJob, bool]]) -> Need:
    """Of jobs that are not there yet, each with whether it is ready at once."""
    need = Need(Counter(), Counter(), set())
    for job, is_ready in jobs:
        (need.ready if is_ready else need.scheduled)[job.queue] += 1
        need.lanes.add((job.queue, job.type))
    return need


def refusal(need: Need, bounds: Bounds, taken: Occupancy) -> QueueFullError | TooManyNamesError | None:
    """The first bound that has no room for it."""
    for queue, needed in need.ready.items() if bounds.ready else ():
        ready = taken.ready(queue)
        if ready + needed > bounds.ready:
            return QueueFullError(queue, waiting=ready, needed=needed, capacity=bounds.ready)
    if bounds.scheduled and need.scheduled:
        scheduled, needed = taken.scheduled(), need.scheduled.total()
        if scheduled + needed > bounds.scheduled:
            return TooManyScheduledError(
                next(iter(need.scheduled)), waiting=scheduled, needed=needed, capacity=bounds.scheduled
            )
    fresh = [lane for lane in need.lanes if not taken.has_lane(lane)] if bounds.names else []
    if fresh and taken.lanes() + len(fresh) > bounds.names:
        return TooManyNamesError(*min(fresh), most=bounds.names)
    return None
