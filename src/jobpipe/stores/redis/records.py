"""Record: a job as the server keeps it, in the order of its fields; and what goes to the scripts and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import JobConflictError, QueueFullError, TooManyNamesError, TooManyScheduledError
from ...job import Attempt, Job, JobError, JobStatus, Progress, instant
from ..admission import Bounds
from ..base import (
    Answer,
    Claim,
    Lease,
    NewJob,
    Parcel,
    Receipt,
    Settlement,
)


class Record(Struct, frozen=True, array_like=True, gc=False):
    """A job. What there is not is 0, or empty; a text is True where it is too long to stand here."""

    seq: str
    """Its number in the order of insertion, in fourteen digits: members of sorted sets are compared as text."""
    id: str
    type: str
    queue: str
    status: str
    attempts: int
    runs: int
    """Numbers the history; unlike attempts, a revival does not reset it."""
    max_retries: int
    priority: int
    run_at: float
    deadline: float
    created_at: float
    started_at: float
    finished_at: float
    worker: str
    token: str
    """Of the lease; it stays after a settlement, until the next claim."""
    is_cancelling: int
    fingerprint: str
    key: str
    gate: str
    progress: str
    """JSON, as the texts that follow. Those, and only those, may be stored apart."""
    payload: str | bool
    result: str | bool
    error: str | bool
    history: str | bool
    """A line of JSON for each run."""


class _Ended(Struct):
    """A line of the history."""

    number: int
    began_at: float
    ended_at: float
    worker: str
    error: JobError | None


_read_records = msgspec.msgpack.Decoder(list[Record]).decode
_read_floats = msgspec.msgpack.Decoder(list[float]).decode
_read_record = msgspec.msgpack.Decoder(Record).decode
_read_error = msgspec.json.Decoder(JobError).decode
_read_progress = msgspec.json.Decoder(Progress).decode
_read_ended = msgspec.json.Decoder(_Ended).decode
_read_json = msgspec.json.Decoder().decode
_write_json = msgspec.json.Encoder().encode
pack = msgspec.msgpack.Encoder().encode


def text_of(value: Any) -> str:
    """A value as JSON; empty for None."""
    return "" if value is None else _write_json(value).decode()


# Into the scripts


def new_values(job: NewJob) -> tuple[Any, ...]:
    """What inserting.lua unpacks."""
    return (
        *(job.id, job.type, job.queue, job.payload.decode(), job.max_retries, job.priority, job.delay),
        *(
            job.run_at if job.run_at is not None else False,
            job.deadline or 0,
            job.fingerprint,
            key_text(job.key),
            job.former,
        ),
    )


def key_text(key: str | None) -> str:
    """A key as it is stored: empty for None, so that an empty key is none of these."""
    return "" if key is None else f"={key}"


def key_of(stored: str) -> str | None:
    """The key again."""
    return stored[1:] if stored else None


def kept_values(parcel: Parcel) -> tuple[Any, ...]:
    """What adopt.lua unpacks besides the job."""
    lines = [
        text_of(
            _Ended(
                number=run.number,
                began_at=run.began_at.timestamp(),
                ended_at=run.ended_at.timestamp(),
                worker=run.worker,
                error=run.error,
            )
        )
        for run in parcel.history
    ]
    return (
        *(parcel.attempts, parcel.runs, parcel.created_at, parcel.started_at or 0),
        *(text_of(parcel.error), text_of(parcel.progress), "\n".join(lines)),
    )


def outcome_values(settlement: Settlement) -> tuple[Any, ...]:
    """What settle.lua unpacks."""
    outcome = settlement.outcome
    return (
        settlement.lease.token,
        outcome.move,
        "" if outcome.result is None else outcome.result.decode(),
        text_of(outcome.error),
        outcome.delay,
        text_of(outcome.progress),
        outcome.cools,
    )


# Out of them


def answer_of(values: Sequence[Any], batch: Sequence[NewJob], bounds: Bounds) -> Answer:
    """What became of a batch."""
    kind, *rest = values
    if kind == "ok":
        return [
            Receipt(job.id, JobStatus(status), is_new)
            for job, status, is_new in zip(batch, rest[::2], rest[1::2], strict=True)
        ]
    if kind == "conflict":
        id, is_twice = rest
        return JobConflictError(id, "is twice in the batch") if is_twice else JobConflictError(id)
    if kind == "names":
        return TooManyNamesError(*rest, most=bounds.names)
    queue, waiting, needed = rest
    if kind == "scheduled":
        return TooManyScheduledError(queue, waiting=waiting, needed=needed, capacity=bounds.scheduled)
    return QueueFullError(queue, waiting=waiting, needed=needed, capacity=bounds.ready)


def claims_of(packed: bytes, delays: bytes) -> list[Claim]:
    """Those of claim.lua."""
    return [
        Claim(
            lease=Lease(record.id, record.attempts, record.worker, record.token),
            type=record.type,
            queue=record.queue,
            payload=_bytes_of(record.payload),
            attempts=record.attempts,
            max_retries=record.max_retries,
            priority=record.priority,
            deadline=record.deadline or None,
            run_at=record.run_at,
            created_at=record.created_at,
            started_at=record.started_at,
            starts_in=starts_in,
            key=key_of(record.key),
        )
        for record, starts_in in zip(_read_records(packed), _read_floats(delays), strict=True)
    ]


def jobs_of(packed: bytes) -> list[Job]:
    """Without payload, result and history."""
    return [_job_of(record) for record in _read_records(packed)]


def whole_job_of(packed: bytes) -> Job:
    """With all that there is."""
    record = _read_record(packed)
    return msgspec.structs.replace(
        _job_of(record),
        payload=_value_of(record.payload),
        result=_value_of(record.result),
        history=_history_of(record.history),
    )


def parcels_of(packed: bytes) -> list[Parcel]:
    """Those of export.lua."""
    return [_parcel_of(record) for record in _read_records(packed)]


def _parcel_of(record: Record) -> Parcel:
    job = _job_of(record)
    return Parcel(
        number=int(record.seq),
        job=NewJob(
            id=record.id,
            type=record.type,
            queue=record.queue,
            payload=_bytes_of(record.payload),
            max_retries=record.max_retries,
            priority=record.priority,
            delay=0.0,
            run_at=record.run_at,
            deadline=job.deadline,
            fingerprint=record.fingerprint,
            key=key_of(record.key),
        ),
        attempts=record.attempts,
        runs=record.runs,
        created_at=record.created_at,
        started_at=record.started_at or None,
        error=job.error,
        progress=job.progress,
        history=_history_of(record.history),
    )


def _job_of(record: Record) -> Job:
    return Job(
        id=record.id,
        type=record.type,
        queue=record.queue,
        status=JobStatus(record.status),
        attempts=record.attempts,
        max_retries=record.max_retries,
        priority=record.priority,
        run_at=instant(record.run_at),
        deadline=record.deadline or None,
        error=_read_error(record.error) if isinstance(record.error, str) and record.error else None,
        progress=_read_progress(record.progress) if record.progress else None,
        created_at=instant(record.created_at),
        started_at=instant(record.started_at) if record.started_at else None,
        finished_at=instant(record.finished_at) if record.finished_at else None,
    )


def _bytes_of(stored: str | bool) -> bytes:
    return stored.encode() if isinstance(stored, str) else b""


def _value_of(stored: str | bool) -> Any:
    """The JSON value; None for what is no JSON, which only somebody else can have put there."""
    try:
        return _read_json(stored) if isinstance(stored, str) and stored else None
    except msgspec.DecodeError:
        return None


def _history_of(stored: str | bool) -> tuple[Attempt, ...]:
    lines = stored.split("\n") if isinstance(stored, str) and stored else []
    try:
        return tuple(_attempt_of(_read_ended(line)) for line in lines)
    except msgspec.DecodeError:
        return ()


def _attempt_of(ended: _Ended) -> Attempt:
    return Attempt(
        number=ended.number,
        began_at=instant(ended.began_at),
        ended_at=instant(ended.ended_at),
        worker=ended.worker,
        error=ended.error,
    )
