"""Schedules: jobs that enqueue themselves, at intervals or by the time of day.

A tick is an instant that follows from the schedule alone, so that any number of processes see the same ones;
the store lets one of them enqueue the job. Nothing here knows the local clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from rate_envelope_queue import BadFieldsError, Cron

from ..errors import BadInputError
from .job import instant

LATE = 5.0
"""Seconds after which a tick that did not fire counts as missed."""
SHORTEST, LONGEST = 0.1, 366 * 86_400.0
"""Seconds between two ticks of `every`."""
_PREVIEW = 5


class Missed(StrEnum):
    """What happens to ticks that passed while nothing ran: one job for all of them, or none."""

    ONE = "one"
    NONE = "none"


class ScheduleEntry(Struct, frozen=True, kw_only=True):
    """A schedule: which job it enqueues, when, and how far it has come."""

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
    """The last tick for which it enqueued a job."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When a schedule ticks, checked: every so many seconds, or a cron expression in a time zone."""

    every: float | None = None
    cron: str | None = None
    tz: str | None = None
    _cron: Cron | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if (self.every is None) == (self.cron is None):
            raise BadInputError("every", "or cron must be given, and not both")
        if self.every is not None:
            if self.tz is not None:
                raise BadInputError("tz", "is for cron: an interval has no time zone")
            if not SHORTEST <= self.every <= LONGEST:
                raise BadInputError(
                    "every",
                    f"must be a number of seconds from {SHORTEST:g} to {LONGEST:.0f}, got {self.every!r}",
                )
        object.__setattr__(self, "_cron", None if self.cron is None else _read(self.cron, self.tz))

    def next_after(self, moment: float, anchor_at: float) -> float:
        """The first tick after a moment, both as seconds since the epoch."""
        if self._cron is not None:
            return self._cron.next_after(instant(moment)).timestamp()
        every = self.every or LONGEST  # Why: it has one, which the type cannot say
        passed = max((moment - anchor_at) // every, 0.0)
        for count in (passed, passed + 1, passed + 2):
            tick = anchor_at + count * every
            if count and tick > moment:
                return tick
        raise BadInputError("every", f"is too short, got {every!r}")


def _read(cron: str, tz: str | None) -> Cron:
    try:
        return Cron(cron, tz="UTC" if tz is None else tz)
    except BadFieldsError as error:
        if str(error).startswith("tz "):
            raise BadInputError("tz", f"must be the name of a time zone, got {tz!r}") from None
        raise BadInputError("cron", str(error).removeprefix("expr ")) from None


def timing_of(entry: ScheduleEntry) -> Timing:
    """When the entry ticks."""
    return Timing(every=entry.every, cron=entry.cron, tz=entry.tz)


def placed(entry: ScheduleEntry, now: float) -> ScheduleEntry:
    """The entry as it begins now."""
    return replace(entry, anchor_at=now, next_at=timing_of(entry).next_after(now, now))


def following(entry: ScheduleEntry, now: float) -> float:
    """The first tick of the entry that is still to come."""
    return timing_of(entry).next_after(max(now, entry.next_at), entry.anchor_at)


def next_from(entry: ScheduleEntry, now: float) -> float:
    """Its next tick, or if that has passed, the first that is still to come."""
    return entry.next_at if entry.next_at > now else following(entry, now)


def is_missed(entry: ScheduleEntry, now: float) -> bool:
    """Has its next tick passed so long ago that nobody can have been there, and is it to be left out?"""
    return entry.missed is Missed.NONE and now - entry.next_at > LATE


def preview(entry: ScheduleEntry) -> list[datetime]:
    """Its next ticks."""
    moments = [entry.next_at]
    timing = timing_of(entry)
    while len(moments) < _PREVIEW:
        moments.append(timing.next_after(moments[-1], entry.anchor_at))
    return [instant(moment) for moment in moments]


def tick_id(name: str, tick_at: float) -> str:
    """The id of the job of a tick: the same in every process."""
    moment = instant(tick_at)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    fraction = f".{moment.microsecond:06d}" if moment.microsecond else ""
    return f"{name}@{text}{fraction}Z"
