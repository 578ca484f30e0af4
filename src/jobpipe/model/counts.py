"""What a store tells of jobs as a whole: pages, counts, failures, events, workers."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from .gate import Limit
from .job import Job, JobStatus


class Filter(Struct, frozen=True, kw_only=True):
    """Which jobs; what is None does not matter."""

    status: JobStatus | None = None
    type: str | None = None
    queue: str | None = None
    tag: str | None = None
    error: str | None = None
    """The type of the last error."""


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


MOST_FAILURES = 10_000
"""Failed jobs that are grouped in one call: among a million, reading all would take seconds."""


class FailureGroup(Struct, frozen=True, kw_only=True):
    """Failed jobs of the same type and with the same type of error."""

    type: str
    error: str | None
    count: int
    first_at: datetime
    last_at: datetime
    last_id: str
    """Of the one that failed last."""


class Failures(Struct, frozen=True, kw_only=True):
    """Failed jobs in groups, those that failed last first."""

    failures: list[FailureGroup]
    counted: int
    """How many failed jobs are in the groups: those that failed last."""
    is_complete: bool
    """Are these all failed jobs there are?"""


class JobEvent(Struct, frozen=True, gc=False):
    """One change of a job's status; an insert is one. Numbers grow, without promise of no gaps."""

    number: int
    id: str
    type: str
    queue: str
    status: JobStatus
    attempts: int


class ChildInfo(Struct, frozen=True, kw_only=True):
    """The child process of a run."""

    pid: int
    memory: int
    """Bytes resident."""
    cpu: float
    """Seconds of CPU that the run has used."""


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
    """Those of its types, and of queues."""
    queues: tuple[str, ...] | None = None
    """The only ones that it serves; None for all but the excepted."""
    except_queues: tuple[str, ...] = ()
    slots_by_queue: dict[str, int] = {}
    """Of the queues that have slots of their own."""
    running_by_queue: dict[str, int] = {}
    """How many of its jobs are of each of these."""
    children: dict[str, ChildInfo] = {}
    """Of the jobs that run in processes of their own, by id."""
    seen_at: float = 0.0
    """By the store's clock; set by it."""

    def serves(self, queue: str) -> bool:
        """Does it run jobs of the queue?"""
        return queue in self.queues if self.queues is not None else queue not in self.except_queues

    def slots_for(self, queue: str) -> tuple[int, int]:
        """Its slots that jobs of the queue may take, and how many of these are taken."""
        if self.slots_by_queue:
            return self.slots_by_queue.get(queue, 0), self.running_by_queue.get(queue, 0)
        return self.slots, len(self.running)
