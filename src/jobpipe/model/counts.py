"""What a store tells of jobs as a whole: pages, counts, events, workers."""

from __future__ import annotations

from msgspec import Struct

from .gate import Limit
from .job import Job, JobStatus


class Filter(Struct, frozen=True, kw_only=True):
    """Which jobs; what is None does not matter."""

    status: JobStatus | None = None
    type: str | None = None
    queue: str | None = None
    tag: str | None = None


class Page(Struct, frozen=True):
    """Jobs, newest first, without payload, result and history."""

    jobs: list[Job]
    next: int | None
    """`before` of the next page; None on the last."""


class Tally(Struct, frozen=True, gc=False):
    """The number of jobs of a type in a queue with a status."""

    queue: str
    type: str
    status: JobStatus
    count: int
    """Now; rows with 0 may be there."""
    total: int
    """How often a job came to have it, since the queue and the type have jobs; see `Store.prune`."""


class Counts(Struct, frozen=True):
    """All tallies, and the queues that are paused (also those without jobs)."""

    tallies: list[Tally]
    paused: frozenset[str]
    retired: dict[tuple[str, JobStatus], int] = {}
    """Totals, by type and status, of tallies that were forgotten while their type has jobs in another queue: with
    these, the totals of a type never shrink as long as it has jobs."""


class JobEvent(Struct, frozen=True, gc=False):
    """One change of a job's status; an insert is one. Numbers grow, without promise of no gaps."""

    number: int
    id: str
    type: str
    queue: str
    status: JobStatus
    attempts: int


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """A process that runs jobs."""

    name: str
    types: tuple[str, ...]
    slots: int
    """How many jobs it runs at once."""
    running: tuple[str, ...]
    """The ids of the jobs that it runs."""
    started_at: float
    limits: tuple[Limit, ...] = ()
    """Those of its types."""
    seen_at: float = 0.0
    """By the store's clock; set by it."""
