"""What the memory store keeps of a job, and the heaps in which jobs wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TypeAlias

from msgspec.structs import replace

from ...model.durable import DurableState, JobSignal, Sleep, Step, Wait
from ...model.job import Attempt, Job, JobError, JobStatus, Progress, instant
from ...model.lease import Lease
from ...model.logs import StoredChunk
from ...model.newjob import ExportedJob, NewJob


@dataclass(slots=True, eq=False)
class Durable:
    """What is recorded of a job, by name."""

    steps: dict[str, Step] = field(default_factory=dict)
    sleeps: dict[str, Sleep] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)
    signals: dict[str, JobSignal] = field(default_factory=dict)

    def look(self) -> DurableState:
        """All of it, in order."""
        return DurableState(
            steps=tuple(self.steps.values()),
            sleeps=tuple(self.sleeps[name] for name in sorted(self.sleeps)),
            waits=tuple(self.waits[name] for name in sorted(self.waits)),
            signals=tuple(self.signals[name] for name in sorted(self.signals)),
        )

    @classmethod
    def of(cls, state: DurableState) -> Durable:
        """The same, from another store."""
        return cls(*({each.name: each for each in getattr(state, name)} for name in _PARTS))


_PARTS = ("steps", "sleeps", "waits", "signals")


@dataclass(slots=True, eq=False)
class Record:
    """A job, with what only the store knows of it."""

    new: NewJob
    lane: Lane
    number: int
    """In the order of insertion."""
    status: JobStatus
    run_at: float
    created_at: float
    expires_at: float | None = None
    attempts: int = 0
    runs: int = 0
    """Numbers the history; unlike attempts, a revival does not reset it."""
    result: bytes | None = None
    error: JobError | None = None
    progress: Progress | None = None
    started_at: float | None = None
    finished_at: float | None = None
    history: tuple[Attempt, ...] = ()
    logs: tuple[StoredChunk, ...] = ()
    last_log: tuple[str, int] = ("", 0)
    """The token of the run that logged last, and the start of its last chunk."""
    worker: str = ""
    token: str | None = None
    """Of the lease; only while it runs or is claimed ahead."""
    settled: str | None = None
    """The token of the last settlement, until the next claim."""
    lease_until: float = 0.0
    is_cancel_asked: bool = False
    is_suspect: bool = False
    """Was it lost while it was claimed ahead? Until it is settled."""
    entry: Entry | None = None
    """Its one valid entry in a heap; only while it waits to be claimed."""
    heap: Heap = field(init=False)
    """In which it waits, or waited last."""
    key: str | None = None
    gate: str | None = None
    """The key of the gate in which it holds a place; only while it is leased."""
    durable: Durable | None = None
    """None until something is recorded."""
    is_in_queue_gate: bool = False
    """Does it hold a place in that of its queue, too?"""

    @property
    def has_begun(self) -> bool:
        """Since it was inserted, or retried by hand: also between its runs."""
        return self.started_at is not None

    def precedence(self) -> tuple[float, float, int]:
        return (-self.new.priority, self.run_at, self.number)

    @property
    def may_expire(self) -> bool:
        """Has it an expiry, and never begun? A run that was given back, or revived from, is a begin, too."""
        return self.expires_at is not None and not self.runs and self.started_at is None

    def is_late(self, at: float) -> bool:
        """Has it expired by then?"""
        return self.expires_at is not None and self.expires_at <= at and self.may_expire

    def is_held(self, lease: Lease) -> bool:
        return self.token is not None and self.token == lease.token

    def look(self) -> Job:
        """The job without payload, result and history."""
        return Job(
            id=self.new.id,
            type=self.new.type,
            queue=self.new.queue,
            status=self.status,
            attempts=self.attempts,
            max_retries=self.new.max_retries,
            priority=self.new.priority,
            run_at=instant(self.run_at),
            deadline=self.new.deadline,
            expires_at=None if self.expires_at is None else instant(self.expires_at),
            unique=self.new.unique,
            tags=self.new.tags,
            error=self.error,
            progress=self.progress,
            created_at=instant(self.created_at),
            started_at=None if self.started_at is None else instant(self.started_at),
            finished_at=None if self.finished_at is None else instant(self.finished_at),
        )

    def pack(self) -> ExportedJob:
        """The job as it moves to another store."""
        return ExportedJob(
            number=self.number,
            job=replace(
                self.new,
                run_at=self.run_at,
                delay=0.0,
                key=self.key,
                former=(),
                expires_at=self.expires_at,
                expires_in=None,
            ),
            attempts=self.attempts,
            runs=self.runs,
            created_at=self.created_at,
            started_at=self.started_at,
            error=self.error,
            progress=self.progress,
            history=self.history,
            logs=self.logs,
            is_waiting=self.status is JobStatus.WAITING,
            durable=None if self.durable is None else self.durable.look(),
        )


Entry: TypeAlias = tuple[tuple[float, ...], int, Record]
"""Key, a number that no other entry has, and the record."""


class Heap:
    """Waiting records by a key; what leaves early stays as a dead entry until it comes up, or half are dead."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._numbers = count()
        self.live = 0

    def push(self, record: Record, key: tuple[float, ...]) -> None:
        record.heap = self
        record.entry = (key, next(self._numbers), record)
        heappush(self._entries, record.entry)
        self.live += 1

    def discard(self, record: Record) -> None:
        record.entry = None
        self.live -= 1
        if len(self._entries) > 2 * self.live + 16:
            self._entries = [entry for entry in self._entries if entry[2].entry is entry]
            heapify(self._entries)

    def first(self) -> Record | None:
        while self._entries:
            entry = self._entries[0]
            if entry[2].entry is entry:
                return entry[2]
            heappop(self._entries)
        return None

    def __iter__(self) -> Iterator[Record]:
        return (entry[2] for entry in self._entries if entry[2].entry is entry)


class Lane:
    """The jobs of one type in one queue: those that are queued, and how many have, and ever had, each status."""

    __slots__ = ("counts", "queue", "ready", "totals", "type")

    def __init__(self, queue: str, type: str) -> None:
        self.queue = queue
        self.type = type
        self.ready = Heap()
        self.counts = dict.fromkeys(JobStatus, 0)
        self.totals = dict.fromkeys(JobStatus, 0)
