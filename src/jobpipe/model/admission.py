"""Admission: what becomes of a batch of new jobs, decided before anything is written: new, the same, a conflict, no room.

Bounds are for those who enqueue. What is there already is never refused: a retry, a job that comes due, an id that is
known. The rule is here once, for all stores in Python; `redis/lua/inserting.lua` says the same, and a property test
holds it against `admit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from ..errors import JobConflictError, QueueFullError, TooManyNamesError, TooManyScheduledError
from .newjob import NewJob, Refusal

Lane = tuple[str, str]
"""Queue and type."""


class Bounds(NamedTuple):
    """What an insert keeps to; 0 is no bound."""

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
    """What is taken; asked only for what bounds need."""

    def ready(self, queue: str) -> int:
        """Queued jobs of the queue."""

    def scheduled(self) -> int:
        """Scheduled jobs of the store."""

    def has_lane(self, lane: Lane) -> bool:
        """Does it have a job, or bookkeeping from the last one?"""

    def lanes(self) -> int:
        """How many there are."""


def admit(
    batch: Sequence[NewJob],
    known: Callable[[str], str | None],
    bounds: Bounds,
    taken: Occupancy | None,
    now: float,
) -> list[NewJob] | Refusal:
    """The jobs of a batch that are new, or why none of it may be inserted.

    `known` gives the fingerprint of the job that is stored under an id. Without bounds there need be no `taken`.
    """
    if len(batch) > 1:
        seen: set[str] = set()
        for job in batch:
            if job.id in seen:
                return JobConflictError(job.id, "is twice in the batch")
            seen.add(job.id)
    new: list[NewJob] = []
    for job in batch:
        fingerprint = known(job.id)
        if fingerprint is None:
            new.append(job)
        elif not job.is_same(fingerprint):
            return JobConflictError(job.id)
    if taken is not None and any(bounds):
        refused = refusal(need_of(new, now), bounds, taken)
        if refused is not None:
            return refused
    return new


def need_of(jobs: Iterable[NewJob], now: float) -> Need:
    """Of jobs that are not there yet."""
    need = Need(Counter(), Counter(), set())
    for job in jobs:
        (need.ready if job.due_at(now) <= now else need.scheduled)[job.queue] += 1
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
