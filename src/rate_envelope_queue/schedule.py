"""When a periodic envelope runs next: Every counts seconds, Cron matches the time of day.

Schedules are values: they hold no state and start nothing. What must be remembered from one tick
to the next is a Beat, which the queue keeps. Every asks only the monotonic clock; Cron also the wall clock.
Invariant: what comes next is strictly after the moment it was asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from math import inf, nextafter
from typing import TYPE_CHECKING, Protocol

from ._checks import Seconds, duration
from .errors import BadFieldsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Beat = float | tuple[datetime, float] | None
"""What a schedule remembers between two ticks. The queue just keeps it, but for the ticks that it follows itself."""

_DAY = timedelta(days=1)
_HAIR = timedelta(seconds=1)
_SET_BACK = timedelta(hours=3)  # Debian's limit: what is set back further was wrong before
# Why 50: the longest wait of any expression is 40 years, for a 29 February on a given weekday.
_HORIZON = 50
_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}


class Schedule(Protocol):
    """What the queue needs to know of a schedule."""

    @property
    def interval(self) -> float:
        """The least time between two ticks, which a deadline may not exceed; 0 if there is no such rule."""

    @property
    def follows_wall(self) -> bool:
        """Does it ask the wall clock? If not, any `wall` will do."""

    def next_after(self, moment: datetime) -> datetime: ...
    def preview(self, n: int, start: datetime | None = None) -> list[datetime]: ...

    def first_due(self, now: float, wall: datetime) -> tuple[float, Beat]:
        """The instant of the first tick, and what to remember."""

    def next_due(self, now: float, wall: datetime, beat: Beat) -> tuple[float, Beat]:
        """The instant of the tick after a run that ended now, and what to remember.

        A tick has run once `now` has reached its instant; before that, the run was an extra one.
        """


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Every:
    """Runs at once, and then every `seconds`.

    The seconds count from the end of a run. With `fixed_rate` they count from the first tick, without
    drift, and ticks that were missed are skipped. `jitter` delays each tick by a random time up to that many seconds.
    """

    seconds: float
    jitter: float
    fixed_rate: bool

    def __init__(self, seconds: Seconds, *, jitter: Seconds = 0, fixed_rate: bool = False) -> None:
        if not isinstance(fixed_rate, bool):
            raise BadFieldsError(f"fixed_rate must be True or False, got {fixed_rate!r}")
        object.__setattr__(self, "seconds", duration("seconds", seconds, positive=True))
        object.__setattr__(self, "jitter", duration("jitter", jitter))
        object.__setattr__(self, "fixed_rate", fixed_rate)

    @property
    def interval(self) -> float:
        """The seconds between two ticks."""
        return self.seconds

    @property
    def follows_wall(self) -> bool:
        """Never: seconds are those of the monotonic clock."""
        return False

    def next_after(self, moment: datetime) -> datetime:
        """The moment plus `seconds` of real time, without jitter; in the time zone of the moment."""
        step = max(timedelta(seconds=self.seconds), timedelta.resolution)
        return (_utc("moment", moment) + step).astimezone(moment.tzinfo)

    def preview(self, n: int, start: datetime | None = None) -> list[datetime]:
        """The n times after `start`, by default now."""
        return _preview(self, n, start)

    def first_due(self, now: float, wall: datetime) -> tuple[float, Beat]:
        """At once; at a fixed rate, the beat is counted from here."""
        return now, now if self.fixed_rate else None

    def next_due(
        self, now: float, wall: datetime, beat: Beat, rand: Callable[[], float] | None = None
    ) -> tuple[float, Beat]:
        """So many seconds from now; at a fixed rate, the first beat after now."""
        due, beat = self._tick(now, beat)
        if self.jitter:
            due += self.jitter * (rand or _random())()
        return due, beat

    def _tick(self, now: float, beat: Beat) -> tuple[float, Beat]:
        """`next_due` without jitter: the one rule, which the queue itself follows too."""
        seconds = self.seconds
        if not self.fixed_rate:
            return now + seconds, None
        start = beat if isinstance(beat, float) else now
        passed = (now - start) // seconds if now > start else 0.0
        due = start + (passed + 1.0) * seconds
        if not now < due < inf:  # hardly ever: rounded down to now
            due = start + (passed + 2.0) * seconds
            if not now < due < inf:
                due = nextafter(now, inf)  # Why: an interval finer than the clock can show.
        return due, start

    def __repr__(self) -> str:
        seconds, jitter = (repr(number).removesuffix(".0") for number in (self.seconds, self.jitter))
        options = f", {jitter=!s}" * (self.jitter > 0) + ", fixed_rate=True" * self.fixed_rate
        return f"Every({seconds}{options})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Cron:
    """Runs whenever the wall clock of a time zone matches a cron expression (extra `cron`).

    Five fields, or six with the seconds first, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. Where clocks change, Debian's rule: an entry whose minute
    and hour do not begin with `*` runs once for each of its times, at the end of the gap if the time is
    skipped, at the first of the two if it is repeated. Any other follows the clock: not in
    what is skipped, twice in what is repeated.
    """

    expr: str
    tz: str | tzinfo  # the zone's name if it has one, so that equal zones are equal
    _fields: str = field(compare=False)
    _zone: tzinfo = field(compare=False)
    _once: bool = field(compare=False)  # whether each of its times counts once, though skipped or repeated

    def __init__(self, expr: str, *, tz: str | tzinfo = "UTC") -> None:
        if not isinstance(expr, str):
            raise BadFieldsError(f"expr must be a cron expression, got {expr!r}")
        fields = _fields_of(expr)
        zone = _zone_of(tz)
        object.__setattr__(self, "expr", expr)
        object.__setattr__(self, "tz", "UTC" if zone is UTC else getattr(zone, "key", None) or zone)
        object.__setattr__(self, "_fields", fields)
        object.__setattr__(self, "_zone", zone)
        object.__setattr__(self, "_once", not any(part[0] == "*" for part in fields.split()[-5:-3]))
        try:
            self._find(datetime(2026, 1, 1, tzinfo=UTC))
        except OverflowError as error:
            raise BadFieldsError(f"expr must fire at some time, {expr!r} never does") from error

    @property
    def interval(self) -> float:
        """Always 0: a cron entry may have any deadline."""
        return 0.0

    @property
    def follows_wall(self) -> bool:
        """Always: it matches the time of day."""
        return True

    def next_after(self, moment: datetime) -> datetime:
        """The first match after the moment, in the schedule's time zone."""
        return self._find(_utc("moment", moment)).astimezone(self._zone)

    def preview(self, n: int, start: datetime | None = None) -> list[datetime]:
        """The n matches after `start`, by default now."""
        return _preview(self, n, start)

    def first_due(self, now: float, wall: datetime) -> tuple[float, Beat]:
        """The next match."""
        return self.next_due(now, wall, None)

    def next_due(self, now: float, wall: datetime, beat: Beat) -> tuple[float, Beat]:
        """The next match that has not run yet."""
        here = _utc("wall", wall)
        match = self._find(here)
        # Why: a match may have run though the wall clock is still before it: by a hair, as the alarm is
        # monotonic, or because it was set back. A clock that was set back is followed, but not by daily entries.
        ahead = _SET_BACK if self._once else _HAIR
        if isinstance(beat, tuple) and beat[0] == match < here + ahead and now >= beat[1]:
            match = self._find(match)
        due = now + (match - here).total_seconds()
        return due, (match, due)

    def _find(self, after: datetime) -> datetime:
        """The first instant of a match after this one, both in UTC; OverflowError if there is none."""
        wall = after.astimezone(self._zone).replace(tzinfo=None)
        # Why: a clock that is set back within a day comes again to times that are behind it now.
        back = max(_offset(after, self._zone) - _offset(after + _DAY, self._zone), timedelta())
        found: list[datetime] = []
        for match in _matches(self._fields, wall - back):
            if match.year > wall.year + _HORIZON:
                break
            found += [instant for instant in self._instants(match) if instant > after]
            if found and match > wall:
                return min(found)
        raise OverflowError(f"{self!r} does not fire within {_HORIZON} years after {after}")

    def _instants(self, wall: datetime) -> tuple[datetime, ...]:
        """When, in UTC, the entry runs for this time of the wall clock."""
        first, second = (wall.replace(tzinfo=self._zone, fold=fold).astimezone(UTC) for fold in (0, 1))
        if first.astimezone(self._zone).replace(tzinfo=None) == wall:
            return (first,) if self._once else (first, second)
        # The clock never shows it. By the offset after the change it would be too early, and by that before too late.
        return (_change(second, first, self._zone),) if self._once else ()

    def __repr__(self) -> str:
        return f"Cron({self.expr!r}, tz={self.tz!r})"


def _random() -> Callable[[], float]:
    from random import random  # Why here: it takes longer to import than this module

    return random


def _fields_of(expr: str) -> str:
    """The fields that a name such as @daily stands for; any other expression as it is."""
    if not expr.startswith("@"):
        return expr
    try:
        return _NAMED[expr]
    except KeyError:
        raise BadFieldsError(
            f"expr must be a cron expression, or one of {', '.join(_NAMED)}, got {expr!r}"
        ) from None


def _matches(expr: str, after: datetime) -> Iterator[datetime]:
    """The naive times after this one that match; it ends when there is none for 50 years."""
    # Why naive: cronsim goes wrong at clock changes; it steps by whole hours and may answer with the past.
    try:
        from cronsim import CronSim, CronSimError
    except ImportError as error:
        raise ImportError(
            "Cron needs cronsim: pip install 'rate-envelope-queue[cron]'", name="cronsim"
        ) from error
    try:
        return CronSim(expr, after)
    except (CronSimError, ValueError) as error:
        raise BadFieldsError(
            f"expr must be a cron expression that can fire, got {expr!r}: {error}"
        ) from error


def _zone_of(tz: str | tzinfo) -> tzinfo:
    """The time zone of this name; BadFieldsError if there is none, or if it cannot tell its own time."""
    if tz == "UTC":
        return UTC  # Why: known without any tz database.
    from zoneinfo import ZoneInfo  # Why here: only a cron schedule needs it

    try:
        zone = ZoneInfo(tz) if isinstance(tz, str) else tz
        noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        # Why: pytz fails here; its zones are off by minutes until they are localized.
        if noon.astimezone(zone).replace(tzinfo=zone) - noon == timedelta():
            return zone
        reason = None
    except (KeyError, ValueError, OSError, TypeError, NotImplementedError) as error:
        reason = error
    raise BadFieldsError(f"tz must be the name of a time zone or a tzinfo, got {tz!r}") from reason


def _offset(instant: datetime, zone: tzinfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()


def _change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The instant between these two at which the zone's clock is set forward."""
    seconds = range(int((after - before).total_seconds()))
    offset = _offset(before, zone)
    passed = bisect_right(
        seconds, offset, key=lambda second: _offset(before + timedelta(seconds=second), zone)
    )
    return before + timedelta(seconds=passed)


def _preview(schedule: Schedule, n: object, start: datetime | None) -> list[datetime]:
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise BadFieldsError(f"n must be an integer >= 0, got {n!r}")
    moment = datetime.now(UTC) if start is None else start
    _utc("start", moment)
    return [moment := schedule.next_after(moment) for _ in range(n)]


def _utc(name: str, moment: object) -> datetime:
    """The same moment in UTC; BadFieldsError unless it is an aware datetime."""
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise BadFieldsError(f"{name} must be an aware datetime, got {moment!r}")
    return moment.astimezone(UTC)
