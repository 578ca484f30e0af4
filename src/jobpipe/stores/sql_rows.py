"""What rows have in common in the stores that speak SQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from ..model.counts import JobEvent, WorkerInfo
from ..model.durable import DurableState, JobSignal, Sleep, Step, Wait
from ..model.job import Attempt, Move, OnDuplicate
from ..model.logs import StoredChunk
from ..model.newjob import ExportedJob, NewJob
from ..model.schedule import Missed, ScheduleEntry
from .stored import READERS, Reader, optional, read_error, read_progress, status_of

COLUMNS = (
    *("id", "type", "queue", "status", "attempts", "max_retries", "priority", "run_at", "deadline"),
    *("created_at", "started_at", "finished_at", "error", "progress", "expires_at", "unique", "tags"),
    *("payload", "result", "history", "on_duplicate", "max_wait"),
)
"""Of page.sql, up to the tags, and of get.sql, after the number of the job."""
_read_json = msgspec.json.Decoder().decode
_write_json = msgspec.json.Encoder().encode
SQL_READERS: dict[str, Reader] = {
    **READERS,
    "error": optional(read_error),
    "progress": optional(read_progress),
    "payload": _read_json,
    "result": optional(_read_json),
}
"""Of these columns; the history is stored in other ways here and there."""


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return _write_json(value).decode()


def event_of(row: Sequence[Any]) -> JobEvent:
    """A row of events.sql."""
    number, id, type, queue, status, attempts = row
    return JobEvent(number, id, type, queue, status_of(status), attempts)


def worker_of(row: Sequence[Any]) -> WorkerInfo:
    """A row of workers.sql."""
    info, seen_at = row
    return msgspec.structs.replace(msgspec.json.decode(info, type=WorkerInfo), seen_at=seen_at)


def exported_of(
    row: Sequence[Any], *, history: tuple[Attempt, ...], tags: Sequence[str], logs: Sequence[StoredChunk]
) -> ExportedJob:
    """A row of export.sql, with those of its values that are stored in other ways here and there."""
    number, id, type, queue, payload, max_retries, priority, run_at, deadline, fingerprint, key, *kept = row
    attempts, runs, created_at, started_at, error, progress, _, *more = kept
    expires_at, unique, on_duplicate, max_wait, _, trace = more
    job = NewJob(
        id=id,
        type=type,
        queue=queue,
        payload=payload.encode() if isinstance(payload, str) else payload,
        max_retries=max_retries,
        priority=priority,
        delay=0.0,
        run_at=run_at,
        deadline=deadline,
        fingerprint=fingerprint,
        key=key,
        expires_at=expires_at,
        unique=unique,
        on_duplicate=None if on_duplicate is None else OnDuplicate(on_duplicate),
        max_wait=max_wait,
        tags=tuple(tags),
        trace=trace,
    )
    return ExportedJob(
        number=number,
        job=job,
        attempts=attempts,
        runs=runs,
        created_at=created_at,
        started_at=started_at,
        error=None if error is None else read_error(error),
        progress=None if progress is None else read_progress(progress),
        history=history,
        logs=tuple(logs),
    )


def chunk_of(row: Sequence[Any]) -> StoredChunk:
    """A row of logs.sql."""
    return StoredChunk(**dict(zip(StoredChunk.__struct_fields__, row, strict=True)))


def durable_states(
    steps: Iterable[Sequence[Any]], suspensions: Iterable[Sequence[Any]], signals: Iterable[Sequence[Any]]
) -> dict[Any, DurableState]:
    """The rows of steps.sql, suspensions.sql and signals.sql, by the jobs that they begin with."""
    found: defaultdict[Any, defaultdict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for job, name, began_at, ended_at, result in steps:
        step = Step(name=name, began_at=began_at, ended_at=ended_at, result=result.encode())
        found[job]["steps"].append(step)
    for job, move, name, until, is_timed_out in suspensions:
        if move == Move.SLEEP:
            found[job]["sleeps"].append(Sleep(name=name, until=until))
        else:
            found[job]["waits"].append(Wait(name=name, until=until, is_timed_out=bool(is_timed_out)))
    for job, name, payload, fingerprint, sent_at, is_used in signals:
        signal = JobSignal(
            name=name,
            payload=payload.encode(),
            fingerprint=fingerprint,
            sent_at=sent_at,
            is_used=bool(is_used),
        )
        found[job]["signals"].append(signal)
    return {
        job: DurableState(**{name: tuple(each) for name, each in parts.items()})
        for job, parts in found.items()
    }


def schedule_of(row: Sequence[Any]) -> ScheduleEntry:
    """A row of schedules.sql."""
    fields = dict(zip(ScheduleEntry.__struct_fields__, row, strict=True))
    read = {"payload": fields["payload"].encode(), "missed": Missed(fields["missed"])}
    return ScheduleEntry(**fields | read | {"is_paused": bool(fields["is_paused"])})


def schedule_values(entry: ScheduleEntry) -> dict[str, Any]:
    """The parameters of put_schedule.sql."""
    return asdict(entry) | {"payload": entry.payload.decode(), "missed": entry.missed.value}
