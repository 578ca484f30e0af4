"""Schedules as a store keeps them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Missed(StrEnum):
    """What happens to ticks that passed while nothing ran: one job for all of them, or none."""

    ONE = "one"
    NONE = "none"


class ScheduleEntry(Struct, frozen=True, kw_only=True):
    """A schedule: which job it puts in, when, and how far it has come."""

    name: str
    type: str
    queue: str
    payload: bytes
    """JSON."""
    every: float | None = None
    cron: str | None = None
    tz: str | None = None
    missed: Missed = Missed.ONE
    anchor_at: float = 0.0
    """From when `every` counts."""
    next_at: float = 0.0
    """Its next tick."""
    last_at: float | None = None
    """The last tick for which it put a job in."""
    last_job: str | None = None
    is_paused: bool = False
    """Does no tick fire? Then `next_at` is where it stood."""

    @property
    def timing(self) -> tuple[float | None, str | None, str | None]:
        """What, if it changes, makes its ticks other ones."""
        return self.every, self.cron, self.tz


class Schedules(Struct, frozen=True):
    """All schedules by name, and what time it is for the store."""

    now: float
    entries: list[ScheduleEntry]
