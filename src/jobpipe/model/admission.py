"""Admission: what becomes of a batch of new jobs, decided before anything is written: new, the same, a conflict, no room.

Bounds are for those who enqueue. What is there already is never refused: a retry, a job that comes due, an id that is
known, the job of a unique name that waits. The rule is here once, for all stores in Python; `redis/lua/inserting.lua` says the same, and a property test
holds it against `admit`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from ..errors import (
    DuplicateError,
    JobConflictError,
    QueueFullError,
    TooManyNamesError,
    TooManyScheduledError,
)
from .newjob import NewJob, Refusal
from .unique import CANCELLING, Fate, Named, Waiting, fate_of

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


class Plan(NamedTuple):
    """What to do for a batch, in this order, and the answer."""

    new: list[NewJob]
    """To be inserted."""
    replaced: dict[str, NewJob]
    """By the id of a job that waits, perhaps one of the new: what it takes its content from."""
    cancelled: list[str]
    """The ids of jobs to be cancelled, since they are to be started anew."""
    receipts: list[tuple[str, bool]]
    """For each job of the batch the id that it has, and whether it is new."""


def no_names(name: str) -> Named:
    """For who knows of no unique name."""
    return Named()


def admit(
    batch: Sequence[NewJob],
    known: Callable[[str], str | None],
    bounds: Bounds,
    taken: Occupancy | None,
    now: float,
    named: Callable[[str], Named] = no_names,
) -> Plan | Refusal:
    """What to do for a batch, or why none of it may be inserted.

    `known` gives the fingerprint of the job that is stored under an id, `named` the jobs of a unique name. Without
    bounds there need be no `taken`.
    """
    if len(batch) > 1:
        seen: set[str] = set()
        for job in batch:
            if job.id in seen:
                return JobConflictError(job.id, "is twice in the batch")
            seen.add(job.id)
    plan = Plan([], {}, [], [])
    names: dict[str, Named] = {}
    for job in batch:
        fingerprint = known(job.id)
        if fingerprint is not None:
            if not job.is_same(fingerprint):
                return JobConflictError(job.id)
            plan.receipts.append((job.id, False))
        elif job.unique is None:
            plan.new.append(job)
            plan.receipts.append((job.id, True))
        else:
            found = names[job.unique] if job.unique in names else named(job.unique)
            after = _take_up(job, found, plan)
            if not isinstance(after, Named):
                return after
            names[job.unique] = after
    if taken is not None and any(bounds):
        refused = refusal(need_of(plan.new, now), bounds, taken)
        if refused is not None:
            return refused
    return plan


def _take_up(job: NewJob, named: Named, plan: Plan) -> Named | DuplicateError:
    """Note in the plan what becomes of a job with a unique name; how that name stands then."""
    fate = fate_of(job, named)
    if isinstance(fate, DuplicateError):
        return fate
    if named.waiting is None:
        plan.new.append(job)
        named = named._replace(waiting=Waiting(job.id, job.type, job.queue))
    elif fate is Fate.MERGED:
        plan.replaced[named.waiting.id] = job
    assert named.waiting is not None
    plan.receipts.append((named.waiting.id, fate is Fate.STORED))
    if job.on_duplicate in CANCELLING and named.running is not None and named.running not in plan.cancelled:
        plan.cancelled.append(named.running)
    return named


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
