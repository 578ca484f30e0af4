"""What rows have in common in the stores that speak SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from .base import Missed, ScheduleEntry


def schedule_of(row: Sequence[Any]) -> ScheduleEntry:
    """A row of schedules.sql."""
    name, type, queue, payload, every, cron, tz, missed, anchor_at, next_at, last_at, *rest = row
    last_job, is_paused = rest
    return ScheduleEntry(
        name=name,
        type=type,
        queue=queue,
        payload=payload.encode(),
        every=every,
        cron=cron,
        tz=tz,
        missed=Missed(missed),
        anchor_at=anchor_at,
        next_at=next_at,
        last_at=last_at,
        last_job=last_job,
        is_paused=bool(is_paused),
    )


def schedule_values(entry: ScheduleEntry) -> dict[str, Any]:
    """The parameters of put_schedule.sql."""
    return asdict(entry) | {"payload": entry.payload.decode(), "missed": entry.missed.value}
