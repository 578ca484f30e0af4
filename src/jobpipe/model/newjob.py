"""NewJob: a job to be stored, and what the store answers. Values that there are many of have gc=False: nothing in them leads back."""

from __future__ import annotations

from msgspec import Struct

from ..errors import JobConflictError, QueueFullError, TooManyNamesError
from .durable import DurableState
from .job import Attempt, JobError, JobStatus, OnDuplicate, Progress
from .logs import StoredChunk


class NewJob(Struct, frozen=True, kw_only=True, gc=False):
    """A job to be inserted, checked and with its defaults filled in."""

    id: str
    type: str
    queue: str
    payload: bytes
    """JSON."""
    max_retries: int
    priority: int
    delay: float
    """Seconds from now, by the store's clock; not used where there is a run_at."""
    run_at: float | None
    """Seconds since the epoch."""
    deadline: float | None
    fingerprint: str
    """Of everything that was sent: two jobs with one id and one fingerprint are the same job."""
    key: str | None = None
    """For the limits of its type that hold for each key by itself; None where it is not known (yet)."""
    former: tuple[str, ...] = ()
    """The fingerprints that it had under former defaults: a stored job with one of these is the same job, too."""
    expires_at: float | None = None
    """Seconds since the epoch."""
    expires_in: float | None = None
    """Seconds from now, by the store's clock; not used where there is an expires_at."""
    unique: str | None = None
    """The name of the work, of which no other job waits."""
    on_duplicate: OnDuplicate | None = None
    """None without a unique name."""
    max_wait: float | None = None
    tags: tuple[str, ...] = ()
    trace: str | None = None
    """The W3C context of the span that enqueued it: `traceparent`, and `tracestate` after a space. No part of its content."""

    def is_same(self, fingerprint: str) -> bool:
        """Is the stored job of its id, with that fingerprint, this very job?"""
        return fingerprint == self.fingerprint or fingerprint in self.former

    def due_at(self, now: float, created_at: float | None = None) -> float:
        """When it is to run, if it is inserted now, or replaces one that was created before.

        It is scheduled until then, and queued from then on.
        """
        due_at = now + self.delay if self.run_at is None else self.run_at
        if self.max_wait is None:
            return due_at
        return min(due_at, (now if created_at is None else created_at) + self.max_wait)

    def expires(self, now: float) -> float | None:
        """When it expires, if it is inserted now."""
        return now + self.expires_in if self.expires_in is not None else self.expires_at

    @property
    def is_plain(self) -> bool:
        """Has it none of the fields that few jobs have? Then stores write nothing of these."""
        return (
            self.unique is None
            and self.expires_at is None
            and self.expires_in is None
            and not self.tags
            and self.trace is None
        )


class NewPayload(Struct, frozen=True):
    """What a job has in place of its payload when it is retried so."""

    payload: bytes
    key: str | None = None
    """Of this payload; None if it has none, or the worker has to find it."""


class Receipt(Struct, frozen=True, gc=False):
    """What became of a new job: inserted, or the same was there already."""

    id: str
    status: JobStatus
    is_new: bool
    warning: str | None = None
    """That no worker may run it, as far as anybody knows."""


Refusal = JobConflictError | QueueFullError | TooManyNamesError
"""Why a batch was not inserted."""
Answer = list[Receipt] | Refusal


class ExportedJob(Struct, frozen=True, kw_only=True):
    """A job that waits, with all that is to be kept of it when it moves to another store."""

    number: int
    """Its place in the order of insertion, in the store that it comes from."""
    job: NewJob
    """With the run_at that it has now."""
    attempts: int
    runs: int
    """Runs ever begun: the numbers in the history go on from it."""
    created_at: float
    started_at: float | None
    error: JobError | None
    progress: Progress | None
    history: tuple[Attempt, ...]
    logs: tuple[StoredChunk, ...] = ()
    is_waiting: bool = False
    """Does it wait for a signal, until its run_at?"""
    durable: DurableState | None = None
    """What is recorded of it, if anything."""
