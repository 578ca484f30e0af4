"""Unique names: of the jobs of one name that are not finished, at most one waits and at most one runs.

A job waits until its first run begins. From then on it runs until it is finished, also between its runs; a retry by
hand makes it wait again. What a new job does is a table; `redis/lua/inserting.lua` follows the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from ..errors import DuplicateError
from .job import OnDuplicate
from .newjob import ExportedJob, NewJob


class Waiting(NamedTuple):
    """The job of a name that waits."""

    id: str
    type: str
    queue: str


class Named(NamedTuple):
    """The jobs of one name that are not finished."""

    waiting: Waiting | None = None
    running: str | None = None
    """Its id."""


class Fate(StrEnum):
    """What becomes of a new job."""

    STORED = "stored"
    DROPPED = "dropped"
    """The answer is the one that waits."""
    MERGED = "merged"
    """The one that waits takes its content."""


_D = OnDuplicate

FATES: Mapping[tuple[OnDuplicate, bool], Fate] = {
    (_D.KEEP, False): Fate.STORED,
    (_D.KEEP, True): Fate.DROPPED,
    (_D.REPLACE, False): Fate.STORED,
    (_D.REPLACE, True): Fate.MERGED,
    (_D.RESTART, False): Fate.STORED,
    (_D.RESTART, True): Fate.MERGED,
}
"""By what it asks for, and whether another of its name waits."""
CANCELLING = frozenset({OnDuplicate.RESTART})
"""What also cancels the one that runs."""


def fate_of(job: NewJob, named: Named) -> Fate | DuplicateError:
    """What becomes of a new job with a unique name; an error if the one that waits is of another kind."""
    fate = FATES[job.on_duplicate or OnDuplicate.KEEP, named.waiting is not None]
    if fate is Fate.MERGED and named.waiting is not None and named.waiting[1:] != (job.type, job.queue):
        return replace_refusal(named.waiting.id, job.unique)
    return fate


def replace_refusal(id: str, name: str | None) -> DuplicateError:
    """Why a new job cannot replace the one of that id, which waits under its unique name."""
    return DuplicateError(
        id, name or "", "it waits, and only a job of the same type and queue can replace it"
    )


def retry_refusal(id: str, name: str | None) -> DuplicateError:
    """Why a job cannot be retried by hand: the one of that id waits under its unique name."""
    return DuplicateError(id, name or "", "it waits, so that no other can be retried; cancel it first")


def move_refusal(id: str, other: str, name: str) -> DuplicateError:
    """Why a job cannot move to another store: the other job has its unique name there."""
    return DuplicateError(
        other, name, f"the job {id!r} with the same name cannot be there as well; cancel one of them"
    )


def refuse_second(exported: Iterable[ExportedJob], named: Callable[[str], Named]) -> None:
    """DuplicateError if one of the jobs from another store would be the second of its name that waits, or that runs."""
    names: dict[str, Named] = {}
    for each in exported:
        job = each.job
        if job.unique is None:
            continue
        found = names[job.unique] if job.unique in names else named(job.unique)
        has_begun = each.started_at is not None
        other = found.running if has_begun else found.waiting and found.waiting.id
        if other is not None:
            raise move_refusal(job.id, other, job.unique)
        names[job.unique] = (
            found._replace(running=job.id)
            if has_begun
            else found._replace(waiting=Waiting(job.id, job.type, job.queue))
        )
