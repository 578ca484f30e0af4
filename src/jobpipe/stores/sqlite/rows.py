"""Rows as jobs and claims, and values as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...model.gate import GateState
from ...model.job import TRANSITIONS, Attempt, Job, JobError, JobStatus, Move, Progress, instant
from ...model.lease import Settlement
from ...model.newjob import NewJob
from ..stored import READERS, Reader, Stored, optional, read_job, texts


class _Ended(Struct):
    """An entry of the history as it is stored."""

    number: int
    began_at: float
    ended_at: float
    worker: str
    error: JobError | None


read_error = msgspec.json.Decoder(JobError).decode
read_progress = msgspec.json.Decoder(Progress).decode
_read_history = msgspec.json.Decoder(list[_Ended]).decode
_read_json = msgspec.json.Decoder().decode
_write = msgspec.json.Encoder().encode


def text_of(value: Any) -> str:
    """A value as JSON text, for SQLite's own JSON functions."""
    return _write(value).decode()


def new_row(job: NewJob, now: float) -> tuple[Any, ...]:
    """An element of insert.sql's `:jobs`."""
    run_at = job.due_at(now)
    status = JobStatus.SCHEDULED if run_at > now else JobStatus.QUEUED
    row = (
        *(job.id, job.type, job.queue, status, job.max_retries, job.priority),
        *(run_at, job.deadline, job.fingerprint, Raw(job.payload), job.key),
    )
    return row if job.is_plain else (*row, *more_values(job, now))


PLAIN_ROW = 11
"""Values of a row that has none of these."""
MORE_COLUMNS = ("expires_at", "unique_name", "on_duplicate", "max_wait", "tags", "trace")


def more_values(job: NewJob, now: float) -> tuple[Any, ...]:
    """The values of `MORE_COLUMNS`."""
    tags = text_of(job.tags) if job.tags else None
    return job.expires(now), job.unique, job.on_duplicate, job.max_wait, tags, job.trace


def settled_row(settlement: Settlement) -> tuple[Any, ...]:
    """An element of settle.sql's `:settlements`; a delay only where the job is to run again."""
    lease, outcome = settlement.lease, settlement.outcome
    status = TRANSITIONS[JobStatus.RUNNING][outcome.move]
    return (
        lease.id,
        lease.token,
        status,
        int(outcome.move is Move.SNOOZE),
        outcome.delay if status is JobStatus.SCHEDULED else None,
        outcome.error,
        outcome.progress,
        None if outcome.result is None else Raw(outcome.result),
        settlement.started_at or None,
    )


def job_of(row: Sequence[Any]) -> Job:
    """A row of page.sql, or of get.sql, which has some columns more."""
    return stored_of(row).job


def stored_of(row: Sequence[Any]) -> Stored:
    """The same, with what is wrong with it."""
    return read_job(dict(zip(_COLUMNS, row[1:], strict=False)), _READERS)


def history_of(stored: Any) -> tuple[Attempt, ...]:
    return tuple(map(_attempt_of, _read_history(stored)))


def ended_of(attempt: Attempt) -> _Ended:
    return _Ended(
        number=attempt.number,
        began_at=attempt.began_at.timestamp(),
        ended_at=attempt.ended_at.timestamp(),
        worker=attempt.worker,
        error=attempt.error,
    )


def _attempt_of(ended: _Ended) -> Attempt:
    return Attempt(
        number=ended.number,
        began_at=instant(ended.began_at),
        ended_at=instant(ended.ended_at),
        worker=ended.worker,
        error=ended.error,
    )


_COLUMNS = (
    *(
        "id",
        "type",
        "queue",
        "status",
        "attempts",
        "max_retries",
        "priority",
        "run_at",
        "deadline",
        "created_at",
    ),
    *("started_at", "finished_at", "error", "progress", "expires_at", "unique", "tags"),
    *("payload", "result", "history", "on_duplicate", "max_wait"),
)
_READERS: dict[str, Reader] = {
    **READERS,
    "error": optional(read_error),
    "progress": optional(read_progress),
    "payload": _read_json,
    "result": optional(_read_json),
    "history": history_of,
    "tags": lambda stored: texts(stored if stored is None else _read_json(stored)),
}


def gate_of(row: Sequence[Any]) -> GateState:
    """A row of gates.sql."""
    type, key, next_at, running, holders = row
    return GateState(
        type=type, key=key, next_at=next_at, running=running, holders=tuple(msgspec.json.decode(holders))
    )
