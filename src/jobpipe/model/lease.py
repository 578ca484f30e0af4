"""Lease: the right to run a job; what a claim brings, and what comes of a run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from .job import PENDING, TRANSITIONS, JobError, JobStatus, Move, Progress
from .logs import LogChunk


class Lease(Struct, frozen=True, gc=False):
    """The right to run a job and to say what came of it; the token is new for every claim."""

    id: str
    attempt: int
    worker: str
    token: str


class Claim(Struct, frozen=True, kw_only=True, gc=False):
    """A job that was claimed, with all that running it takes."""

    lease: Lease
    type: str
    queue: str
    payload: bytes
    attempts: int
    """Runs begun, the one that it is claimed for included."""
    max_retries: int
    priority: int
    deadline: float | None
    run_at: float
    """Since when it could have been claimed."""
    created_at: float
    started_at: float
    """When it was claimed, or may start if that is later."""
    starts_in: float = 0.0
    """So many seconds after the claim it may start, and not before: its type has a rate."""
    key: str | None = None
    has_begun: bool = True
    """Did it begin with the claim? Otherwise it was claimed ahead, and is queued until it begins."""
    expires_at: float | None = None
    """By the store's clock: one that was claimed ahead must not begin from then on, but be given back."""
    trace: str | None = None
    """As in `NewJob`."""
    has_run: bool = False
    """Did it begin before? Told only where it has a trace."""
    problem: str | None = None
    """What is wrong with its stored values, which no call let in: it must not be run, but settled as failed."""

    @property
    def id(self) -> str:
        return self.lease.id


class Room(NamedTuple):
    """Of a queue with slots of its own: how many of its jobs a claim may bring, and how many of these begin."""

    most: int
    begin: int


class QueueChoice(Struct, frozen=True, kw_only=True):
    """Which queues a claim takes jobs from; those without one take from all."""

    only: frozenset[str] | None = None
    """None for all but the excluded ones."""
    excluded: frozenset[str] = frozenset()
    rooms: Mapping[str, Room] = {}
    """By queue; then they are the only ones, and the claim is for each as if there were no other."""

    def __contains__(self, queue: str) -> bool:
        if self.rooms:
            return queue in self.rooms
        return queue in self.only if self.only is not None else queue not in self.excluded


class ClaimResult(Struct, frozen=True):
    """What a claim brought."""

    claims: list[Claim]
    due_in: float | None
    """Seconds until it is worth to ask again: the next scheduled job comes due, or a rate lets the next one start;
    None if nothing is in sight."""
    has_more: bool = False
    """May there be more that could be claimed now? True wherever the claim ended before it had seen all."""


class LeaseState(StrEnum):
    """What an extension found."""

    HELD = "held"
    CANCELLING = "cancelling"
    """Held, but the job is to be cancelled."""
    LOST = "lost"


UNCOUNTED = frozenset({Move.SNOOZE, Move.SLEEP, Move.WAIT, Move.RELEASE})
"""A run that ends so was none: its attempt is given back, and the history does not know it."""


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What a run came to: one of the moves SUCCEED, FAIL, RETRY, SNOOZE, SLEEP, WAIT and CANCEL."""

    move: Move
    result: bytes | None = None
    """JSON; of SUCCEED only."""
    error: JobError | None = None
    delay: float = 0.0
    """Seconds until the next run; of RETRY, SNOOZE and SLEEP, and of WAIT if the signal does not come before."""
    name: str | None = None
    """Of the sleep, or of the signal that is waited for; of SLEEP and WAIT only."""
    progress: Progress | None = None
    """The last that the run reported, if it was not noted before."""
    cools: float = 0.0
    """Seconds in which no job of the type is to start."""

    @property
    def waits_again(self) -> bool:
        """Is the job to run once more?"""
        return TRANSITIONS[JobStatus.RUNNING][self.move] in PENDING


class Settlement(Struct, frozen=True, gc=False):
    """The outcome of the run that has the lease."""

    lease: Lease
    outcome: Outcome
    started_at: float = 0.0
    """When the run began, for a job that was claimed ahead and whose begin was not stored; 0 for now."""
    logs: tuple[LogChunk, ...] = ()
    """What the run logged, as far as it may not be stored yet."""


WORKER_LOST = JobError(type="WorkerLost", message="worker lost")
"""Why a run failed whose lease has run out."""


class Rescued(Struct, frozen=True):
    """A job whose worker was lost, and what it is now: queued, failed, or cancelled if that was requested."""

    id: str
    worker: str
    status: JobStatus
    type: str
    attempts: int
