"""What rows have in common in the stores that speak SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from ..model.logs import StoredChunk
from ..model.schedule import Missed, ScheduleEntry


def chunk_of(row: Sequence[Any]) -> StoredChunk:
    """A row of logs.sql."""
    return StoredChunk(**dict(zip(StoredChunk.__struct_fields__, row, strict=True)))


def schedule_of(row: Sequence[Any]) -> ScheduleEntry:
    """A row of schedules.sql."""
    fields = dict(zip(ScheduleEntry.__struct_fields__, row, strict=True))
    read = {"payload": fields["payload"].encode(), "missed": Missed(fields["missed"])}
    return ScheduleEntry(**fields | read | {"is_paused": bool(fields["is_paused"])})


def schedule_values(entry: ScheduleEntry) -> dict[str, Any]:
    """The parameters of put_schedule.sql."""
    return asdict(entry) | {"payload": entry.payload.decode(), "missed": entry.missed.value}
