"""Job: what the service keeps of a piece of work, and the one table of how its status may change.

Stores build their guards from TRANSITIONS; nothing else says which change is legal. A missing key *is*
the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

DEFAULT_TYPE = "echo"
DEFAULT_QUEUE = "default"
DEFAULT_RETRIES = 10
FORMER_RETRIES = (3,)
"""What the default was before: a request without it, sent again, is still the job that was stored then."""
KEPT_HISTORY = 20
"""How many runs the history of a job keeps."""


class JobStatus(StrEnum):
    """The status of a job."""

    SCHEDULED = "scheduled"
    WAITING = "waiting"
    """Suspended until a signal comes, or the wait for it times out."""
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class OnDuplicate(StrEnum):
    """What a new job does while another of its unique name waits."""

    KEEP = "keep"
    REPLACE = "replace"
    RESTART = "restart"


class Move(StrEnum):
    """What can happen to a job."""

    COME_DUE = "come due"
    POSTPONE = "postpone"
    BEGIN = "begin"
    SUCCEED = "succeed"
    FAIL = "fail"
    RETRY = "retry"
    SNOOZE = "snooze"
    SLEEP = "sleep"
    WAIT = "wait"
    SIGNAL = "signal"
    RELEASE = "release"
    RESCUE = "rescue"
    CANCEL = "cancel"
    REVIVE = "revive"
    EXPIRE = "expire"


_S, _M = JobStatus, Move

TRANSITIONS: Mapping[JobStatus, Mapping[Move, JobStatus]] = {
    _S.SCHEDULED: {_M.COME_DUE: _S.QUEUED, _M.CANCEL: _S.CANCELLED, _M.EXPIRE: _S.EXPIRED},
    _S.WAITING: {_M.SIGNAL: _S.QUEUED, _M.COME_DUE: _S.QUEUED, _M.CANCEL: _S.CANCELLED},
    _S.QUEUED: {
        _M.POSTPONE: _S.SCHEDULED,
        _M.BEGIN: _S.RUNNING,
        _M.CANCEL: _S.CANCELLED,
        _M.EXPIRE: _S.EXPIRED,
    },
    _S.RUNNING: {
        _M.SUCCEED: _S.DONE,
        _M.FAIL: _S.FAILED,
        _M.RETRY: _S.SCHEDULED,
        _M.SNOOZE: _S.SCHEDULED,
        _M.SLEEP: _S.SCHEDULED,
        _M.WAIT: _S.WAITING,
        _M.RELEASE: _S.QUEUED,
        _M.RESCUE: _S.QUEUED,
        _M.CANCEL: _S.CANCELLED,
    },
    _S.DONE: {},
    _S.FAILED: {_M.REVIVE: _S.QUEUED},
    _S.CANCELLED: {_M.REVIVE: _S.QUEUED},
    _S.EXPIRED: {},
}

PENDING = frozenset({JobStatus.SCHEDULED, JobStatus.WAITING, JobStatus.QUEUED})
"""Neither running nor finished."""
FINISHED = frozenset({JobStatus.DONE, JobStatus.FAILED, JobStatus.CANCELLED, JobStatus.EXPIRED})


def sources(move: Move) -> tuple[JobStatus, ...]:
    """The statuses in which it can happen."""
    return tuple(status for status, moves in TRANSITIONS.items() if move in moves)


class JobError(Struct, frozen=True, kw_only=True):
    """Why a run failed."""

    type: str
    message: str
    traceback: str | None = None


class Progress(Struct, frozen=True, kw_only=True):
    """The progress of a run: from 0 to 1, with a note."""

    value: float
    note: str | None = None


class Attempt(Struct, frozen=True, kw_only=True):
    """One run of a job that has ended."""

    number: int
    began_at: datetime
    ended_at: datetime
    worker: str
    error: JobError | None = None


class StepInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step that has ended. A long result may be cut: then it is the beginning of its JSON, as text."""

    name: str
    began_at: datetime
    ended_at: datetime
    result: Any
    cut: bool = False


class Job(Struct, frozen=True, kw_only=True):
    """A job as it was at the time of the call."""

    id: str
    type: str
    queue: str
    status: JobStatus
    payload: Any = None
    result: Any = None
    attempts: int = 0
    max_retries: int = DEFAULT_RETRIES
    priority: int = 0
    run_at: datetime
    deadline: float | None = None
    expires_at: datetime | None = None
    unique: str | None = None
    on_duplicate: OnDuplicate | None = None
    max_wait: float | None = None
    tags: tuple[str, ...] = ()
    error: JobError | None = None
    progress: Progress | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    history: tuple[Attempt, ...] = ()
    steps: tuple[StepInfo, ...] = ()
    """The first 50, from `Jobpipe.get`."""

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED


def instant(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC time."""
    return datetime.fromtimestamp(seconds, UTC)
