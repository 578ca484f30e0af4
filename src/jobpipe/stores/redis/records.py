"""Record: a job as the server keeps it, in the order of its fields; and what goes to the scripts and comes back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...errors import JobConflictError, QueueFullError, TooManyNamesError, TooManyScheduledError
from ...model.admission import Bounds
from ...model.durable import DurableState
from ...model.job import Attempt, Job, JobError, JobStatus, OnDuplicate, Progress
from ...model.lease import Claim, Lease, QueueChoice, Settlement
from ...model.logs import JobLogs, LogChunk, StoredChunk, logs_of
from ...model.newjob import Answer, ExportedJob, NewJob, Receipt
from ...model.unique import replace_refusal
from ..stored import (
    READERS,
    Ended,
    Reader,
    Stored,
    attempt_of,
    ended_of,
    read_error,
    read_job,
    read_progress,
    text,
)
from .durable import state_values, states_of


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
    is_ahead: int = 0
    """Is it claimed ahead? Then it is queued, and has a lease. Records of the first schema end before this."""
    is_suspect: int = 0
    expires_at: float | bool = False
    """False for never. Records of jobs that have neither this nor what follows end before it."""
    unique: str = ""
    on_duplicate: str = ""
    max_wait: float = 0
    tags: tuple[str, ...] = ()
    trace: str = ""
    """A record of an older program ends before it."""


_MORE: tuple[Any, ...] = (False, "", "", 0, [], "")
_SHORT = len(Record.__struct_fields__) - len(_MORE)
"""What stands for the last fields of a record that ends before them."""


_read_records = msgspec.msgpack.Decoder(list[Record]).decode
_read_floats = msgspec.msgpack.Decoder(list[float]).decode
_read_record = msgspec.msgpack.Decoder(Record).decode
_read_raws = msgspec.msgpack.Decoder(list[Raw]).decode
_read_any = msgspec.msgpack.Decoder().decode
_read_ended = msgspec.json.Decoder(Ended).decode
_read_json = msgspec.json.Decoder().decode
_write_json = msgspec.json.Encoder().encode
pack = msgspec.msgpack.Encoder().encode


def text_of(value: Any) -> str:
    """A value as JSON; empty for None."""
    return "" if value is None else _write_json(value).decode()


# Into the scripts


def choice_values(queues: QueueChoice) -> tuple[Any, ...]:
    """What claim.lua is told of the queues."""
    only = queues.rooms or queues.only
    return (
        False if only is None else dict.fromkeys(only, True),
        dict.fromkeys(queues.excluded, True),
        dict(queues.rooms) or False,
    )


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
        *(() if job.is_plain else (_more_values(job),)),
    )


def _more_values(job: NewJob) -> tuple[Any, ...]:
    """What few jobs have: the last fields of a record, and before the trace in how many seconds it expires, if that is told."""
    return (
        False if job.expires_at is None else job.expires_at,
        *(job.unique or "", job.on_duplicate or "", job.max_wait or 0, job.tags),
        False if job.expires_in is None else job.expires_in,
        job.trace or "",
    )


def key_text(key: str | None) -> str:
    """A key as it is stored: empty for None, so that an empty key is none of these."""
    return "" if key is None else f"={key}"


def key_of(stored: str) -> str | None:
    """The key again."""
    return stored[1:] if stored else None


def kept_values(job: ExportedJob) -> tuple[Any, ...]:
    """What adopt.lua unpacks besides the job."""
    lines = [text_of(ended_of(attempt)) for attempt in job.history]
    return (
        *(job.attempts, job.runs, job.created_at, job.started_at or 0),
        *(text_of(job.error), text_of(job.progress), "\n".join(lines)),
        [(chunk.attempt, chunk.cut, chunk.count, chunk.size, chunk.lines) for chunk in job.logs],
        *(job.is_waiting, *state_values(job.durable)),
    )


def outcome_values(settlement: Settlement) -> tuple[Any, ...]:
    """What settle.lua unpacks."""
    outcome = settlement.outcome
    logs: list[Any] = [list(map(chunk_values, settlement.logs))] if settlement.logs else []
    return (
        settlement.lease.token,
        outcome.move,
        "" if outcome.result is None else outcome.result.decode(),
        text_of(outcome.error),
        outcome.delay,
        text_of(outcome.progress),
        outcome.cools,
        settlement.started_at,
        *(logs if outcome.name is None else (*(logs or [False]), outcome.name)),
    )


def chunk_values(chunk: LogChunk) -> tuple[Any, ...]:
    """What logs.lua unpacks."""
    return chunk.start, chunk.cut, chunk.count, chunk.size, chunk.lines


# Out of them


def answer_of(values: Sequence[Any], bounds: Bounds) -> Answer:
    """What became of a batch."""
    kind, *rest = values
    if kind == "ok":
        return [
            Receipt(id, JobStatus(status), is_new)
            for id, status, is_new in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
        ]
    if kind == "duplicate":
        return replace_refusal(*rest)
    if kind == "conflict":
        id, is_twice = rest
        return JobConflictError(id, "is twice in the batch") if is_twice else JobConflictError(id)
    if kind == "names":
        return TooManyNamesError(*rest, most=bounds.names)
    queue, waiting, needed = rest
    if kind == "scheduled":
        return TooManyScheduledError(queue, waiting=waiting, needed=needed, capacity=bounds.scheduled)
    return QueueFullError(queue, waiting=waiting, needed=needed, capacity=bounds.ready)


def claims_of(packed: bytes, delays: bytes, pasts: bytes, now: float) -> list[Claim]:
    """Those of claim.lua."""
    found = {stored.job.id: stored for stored in map(_stored_of, _read_raws(pasts))}
    return [
        Claim(
            lease=Lease(record.id, record.attempts + record.is_ahead, record.worker, record.token),
            type=record.type,
            queue=record.queue,
            payload=_bytes_of(record.payload),
            attempts=record.attempts + record.is_ahead,
            max_retries=record.max_retries,
            priority=record.priority,
            deadline=record.deadline or None,
            run_at=record.run_at,
            created_at=record.created_at,
            started_at=now + starts_in,
            starts_in=starts_in,
            key=key_of(record.key),
            has_begun=not record.is_ahead,
            expires_at=_expiry_of(record) if record.is_ahead else None,
            trace=record.trace or None,
            has_run=bool(record.trace) and _has_run(found.get(record.id)),
            problem=found[record.id].problem if record.id in found else None,
        )
        for record, starts_in in zip(_claimed_of(packed), _read_floats(delays), strict=True)
        if record is not None
    ]


def _has_run(past: Stored | None) -> bool:
    """Did it begin before?"""
    return past is not None and (past.job.started_at is not None or bool(past.job.history))


def _expiry_of(record: Record) -> float | None:
    """Until when it must have begun; None if it did before."""
    return None if record.expires_at is False or record.runs or record.started_at else record.expires_at


def _claimed_of(packed: bytes) -> list[Record | None]:
    """None for one that cannot be read, which only somebody else can have put there: it is rescued, and fails so."""
    try:
        return _read_records(packed)  # type: ignore[return-value]
    except msgspec.DecodeError:
        return [_claimed_alone(raw) for raw in _read_raws(packed)]


def _claimed_alone(raw: Raw) -> Record | None:
    try:
        return _read_record(raw)
    except msgspec.DecodeError:
        return None


def jobs_of(packed: bytes) -> list[Job]:
    """Without payload, result and history."""
    return [_stored_of(raw, _OF_PAGES).job for raw in _read_raws(packed)]


def whole_job_of(packed: bytes) -> Job:
    """With all that there is."""
    return _stored_of(packed).job


def _stored_of(packed: bytes | Raw, names: Collection[str] | None = None) -> Stored:
    """A record, whatever is in it; only of these names, if some are given."""
    try:
        record = _read_any(packed)
        more = _MORE[max(len(record) - _SHORT, 0) :]
        values = dict(zip(Record.__struct_fields__, (*record, *more), strict=True))
    except (msgspec.DecodeError, TypeError, ValueError):
        values = dict.fromkeys(_READERS)
    return read_job({name: values[name] for name in names or _READERS}, _READERS)


def logs_in(packed: bytes, after: int) -> JobLogs:
    """The chunks of logs_of.lua."""
    chunks = (dict(zip(StoredChunk.__struct_fields__, each, strict=True)) for each in _read_any(packed))
    return logs_of([StoredChunk(**each) for each in chunks], after)


def exported_of(packed: bytes, logs: bytes, states: bytes) -> list[ExportedJob]:
    """Those of export.lua."""
    return [
        _exported_of(record, tuple(map(_chunk_of, chunks)), state)
        for record, chunks, state in zip(
            _read_records(packed), _read_any(logs), states_of(states), strict=True
        )
    ]


def _chunk_of(stored: Sequence[Any]) -> StoredChunk:
    """A chunk as logs.lua packs it."""
    attempt, _, _, cut, count, size, lines, *_ = stored
    return StoredChunk(attempt=attempt, cut=cut, count=count, size=size, lines=lines)


def _exported_of(record: Record, logs: tuple[StoredChunk, ...], state: DurableState | None) -> ExportedJob:
    return ExportedJob(
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
            deadline=record.deadline or None,
            fingerprint=record.fingerprint,
            key=key_of(record.key),
            expires_at=None if record.expires_at is False else record.expires_at,
            unique=record.unique or None,
            on_duplicate=OnDuplicate(record.on_duplicate) if record.on_duplicate else None,
            max_wait=record.max_wait or None,
            tags=record.tags,
            trace=record.trace or None,
        ),
        attempts=record.attempts,
        runs=record.runs,
        created_at=record.created_at,
        started_at=record.started_at or None,
        error=_error_of(record.error),
        progress=_progress_of(record.progress),
        history=_history_of(record.history),
        logs=logs,
        is_waiting=record.status == JobStatus.WAITING,
        durable=state,
    )


def _bytes_of(stored: str | bool) -> bytes:
    return stored.encode() if isinstance(stored, str) else b""


def _error_of(stored: Any) -> JobError | None:
    return read_error(stored) if stored != "" else None


def _progress_of(stored: Any) -> Progress | None:
    return read_progress(stored) if stored != "" else None


def _result_of(stored: Any) -> Any:
    return _read_json(stored) if stored != "" else None


def _history_of(stored: Any) -> tuple[Attempt, ...]:
    return tuple(attempt_of(_read_ended(line)) for line in text(stored).split("\n")) if stored != "" else ()


def _unless_0(reader: Reader) -> Reader:
    return lambda value: None if value == 0 else reader(value)


def _unless_empty(reader: Reader) -> Reader:
    return lambda value: None if value == "" else reader(value)


_READERS: dict[str, Reader] = {
    **READERS,
    **{name: _unless_0(READERS[name]) for name in ("deadline", "started_at", "finished_at", "max_wait")},
    **{name: _unless_empty(READERS[name]) for name in ("unique", "on_duplicate")},
    "expires_at": lambda value: None if value is False else READERS["expires_at"](value),
    "error": _error_of,
    "progress": _progress_of,
    "payload": _read_json,
    "result": _result_of,
    "history": _history_of,
}
_OF_PAGES = _READERS.keys() - {"payload", "result", "history", "on_duplicate", "max_wait"}
