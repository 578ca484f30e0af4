"""What the server keeps besides jobs, read back: limits, events, workers and schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from ...model.counts import JobEvent, WorkerInfo
from ...model.gate import Limits
from ...model.job import JobStatus
from ...model.schedule import Missed, ScheduleEntry
from ..stored import gate_of
from .records import text_of

_Gate = tuple[str, str, float, int, list[str]]
_read_limits = msgspec.msgpack.Decoder(tuple[float, list[_Gate], list[tuple[str, float]], list[_Gate]]).decode


def limits_of(packed: bytes) -> Limits:
    """What limits.lua found."""
    now, gates, cooling, of_queues = _read_limits(packed)
    return Limits(now, list(map(gate_of, gates)), dict(cooling), list(map(gate_of, of_queues)))


_read_events = msgspec.msgpack.Decoder(list[list[str | int]]).decode


def events_of(numbers: Sequence[int], packed: bytes, after: int, limit: int) -> list[JobEvent]:
    """Those after that number; each entry has some, of which the first has the number given with it."""
    found: list[JobEvent] = []
    for first, values in zip(numbers, _read_events(packed), strict=True):
        parts: Any = (values[place::5] for place in range(5))
        for number, (id, type, queue, status, attempts) in enumerate(zip(*parts, strict=True), first):
            if number > after:
                found.append(JobEvent(number, id, type, queue, JobStatus(status), attempts))
    return found[:limit]


class _Known(Struct, array_like=True):
    """A worker as it is stored."""

    until: float
    seen_at: float
    info: str


_read_workers = msgspec.msgpack.Decoder(list[_Known]).decode
_read_info = msgspec.json.Decoder(WorkerInfo).decode


def workers_of(packed: bytes) -> list[WorkerInfo]:
    """The workers, by name."""
    known = (
        msgspec.structs.replace(_read_info(each.info), seen_at=each.seen_at) for each in _read_workers(packed)
    )
    return sorted(known, key=lambda info: info.name)


class _Body(Struct):
    """What of a schedule only Python looks at."""

    name: str
    type: str
    queue: str
    payload: str
    every: float | None
    cron: str | None
    tz: str | None
    missed: Missed


class _Entry(Struct, array_like=True):
    """A schedule as it is stored."""

    timing: str
    anchor_at: float
    next_at: float
    last_at: float | str
    """Empty if there was none."""
    last_job: str
    body: str
    is_paused: bool = False
    """An older program has put in none."""


_read_entry = msgspec.msgpack.Decoder(_Entry).decode
_read_entries = msgspec.msgpack.Decoder(list[_Entry]).decode
_read_body = msgspec.json.Decoder(_Body).decode


def entry_values(entry: ScheduleEntry) -> tuple[Any, ...]:
    """What put_schedule.lua keeps."""
    values = asdict(entry) | {"payload": entry.payload.decode()}
    body = _Body(**{name: values[name] for name in _Body.__struct_fields__})
    return (
        text_of(entry.timing),
        entry.anchor_at,
        entry.next_at,
        "" if entry.last_at is None else entry.last_at,
        entry.last_job or "",
        text_of(body),
        entry.is_paused,
    )


def schedule_of(packed: bytes) -> ScheduleEntry:
    """One schedule."""
    return _schedule_of(_read_entry(packed))


def schedules_of(packed: bytes) -> list[ScheduleEntry]:
    """The schedules, by name."""
    return sorted(map(_schedule_of, _read_entries(packed)), key=lambda entry: entry.name)


def _schedule_of(stored: _Entry) -> ScheduleEntry:
    body = _read_body(stored.body)
    return ScheduleEntry(
        **asdict(body) | {"payload": body.payload.encode()},
        anchor_at=stored.anchor_at,
        next_at=stored.next_at,
        last_at=stored.last_at if isinstance(stored.last_at, float) else None,
        last_job=stored.last_job or None,
        is_paused=stored.is_paused,
    )
