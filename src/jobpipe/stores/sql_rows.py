"""What rows have in common in the stores that speak SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import asdict

from ..job import JobStatus
from .base import Counts, Missed, ScheduleEntry, Tally


def schedule_of(row: Sequence[Any]) -> ScheduleEntry:
    """A row of schedules.sql."""
    fields = dict(zip(ScheduleEntry.__struct_fields__, row, strict=True))
    read = {"payload": fields["payload"].encode(), "missed": Missed(fields["missed"])}
    return ScheduleEntry(**fields | read | {"is_paused": bool(fields["is_paused"])})


def schedule_values(entry: ScheduleEntry) -> dict[str, Any]:
    """The parameters of put_schedule.sql."""
    return asdict(entry) | {"payload": entry.payload.decode(), "missed": entry.missed.value}


def counts_of(rows: Iterable[Sequence[Any]], paused: Iterable[str]) -> Counts:
    """The rows of the tallies: queue, type, status, count and total; those without a queue are of lanes that are gone."""
    tallies: list[Tally] = []
    retired: dict[tuple[str, JobStatus], int] = {}
    for queue, type, status, count, total in rows:
        if queue:
            tallies.append(Tally(queue, type, JobStatus(status), count, total))
        else:
            retired[type, JobStatus(status)] = total
    return Counts(tallies, frozenset(paused), retired)
