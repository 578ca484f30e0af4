"""Cron, held against a calendar that is walked step by step; no test looks at the real time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rate_envelope_queue.errors import BadFieldsError
from rate_envelope_queue.schedule import Cron, Schedule

from .support.instants import BERLIN, DAY, HOUR, MINUTE, NOON, moments

if TYPE_CHECKING:
    from collections.abc import Callable

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
YEARS = [2026, 2027]


def until(schedule: Schedule, start: datetime, end: datetime) -> list[datetime]:
    """All times in (start, end), in UTC: two times of one zone are compared by their wall clocks."""
    times: list[datetime] = []
    moment = start
    while (moment := schedule.next_after(moment).astimezone(UTC)) < end:
        times.append(moment)
    return times


# The reference: a year of (instant, what the clock on the wall shows), and the rule read off it.


@cache
def year_of(zone: str, year: int) -> tuple[list[tuple[datetime, datetime]], list[datetime]]:
    """The year by quarter-hours, and by minutes for a day on each side of a change; and the changes."""
    tz = ZoneInfo(zone)
    walk: list[tuple[datetime, datetime]] = []
    changes: list[datetime] = []
    moment = datetime(year, 1, 1, tzinfo=UTC)
    while moment.year == year:
        is_near = (moment - DAY).astimezone(tz).utcoffset() != (moment + 2 * DAY).astimezone(tz).utcoffset()
        step = MINUTE if is_near else 15 * MINUTE
        instants = [moment + at * step for at in range(DAY // step)]
        day = [(instant, instant.astimezone(tz).replace(tzinfo=None)) for instant in instants]
        changes += [now[0] for last, now in pairwise(walk[-1:] + day) if now[1] - last[1] != now[0] - last[0]]
        walk += day
        moment += DAY
    return walk, changes


def daily_by_reference(walk: list[tuple[datetime, datetime]], nominal: list[datetime]) -> list[datetime]:
    """Each nominal wall time once, at the first instant at which the clock shows it or a later one."""
    times = []
    at = 0
    for moment, wall in walk:
        if at < len(nominal) and nominal[at] <= wall:
            times.append(moment)
            while at < len(nominal) and nominal[at] <= wall:
                at += 1
    return times


def every_by_reference(
    walk: list[tuple[datetime, datetime]], shows: Callable[[datetime], bool]
) -> list[datetime]:
    """Every instant at which the clock shows such a time."""
    return [moment for moment, wall in walk if shows(wall)]


def nominal_days(year: int, *times: tuple[int, int]) -> list[datetime]:
    first = datetime(year - 1, 12, 31)
    return [first + day * DAY + h * HOUR + m * MINUTE for day in range(368) for h, m in sorted(times)]


DAILY: dict[str, list[tuple[int, int]]] = {
    "45 1 * * *": [(1, 45)],  # repeated in Lord Howe and New York
    "15 2 * * *": [(2, 15)],  # skipped in all three
    "30 2 * * *": [(2, 30)],  # skipped or repeated in Berlin
    "0,30 1,2 * * *": [(1, 0), (1, 30), (2, 0), (2, 30)],
    "0 3 * * *": [(3, 0)],
}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("expr", DAILY)
def test_a_daily_entry_runs_once_a_day_all_year(zone: str, year: int, expr: str) -> None:
    """Skipped times run at the end of the gap, repeated ones the first time, in every zone."""
    walk, changes = year_of(zone, year)
    assert len(changes) == 2
    first, last = walk[0], walk[-1]
    nominal = [wall for wall in nominal_days(year, *DAILY[expr]) if first[1] < wall]
    got = until(Cron(expr, tz=zone), first[0], last[0] + MINUTE)
    assert got == daily_by_reference(walk, nominal)
    if len(DAILY[expr]) == 1:
        assert len({moment.astimezone(ZoneInfo(zone)).date() for moment in got}) == len(got)


FREQUENT: dict[str, Callable[[datetime], bool]] = {
    "*/15 * * * *": lambda wall: wall.minute % 15 == 0,
    "*/30 * * * *": lambda wall: wall.minute % 30 == 0,
    "0,30 * * * *": lambda wall: wall.minute in {0, 30},
    "*/7 * * * *": lambda wall: wall.minute % 7 == 0,
    "*/15 2 * * *": lambda wall: wall.hour == 2 and wall.minute % 15 == 0,
    "*/15 5 * * *": lambda wall: wall.hour == 5 and wall.minute % 15 == 0,
    "*/20 1-2 * * SUN": lambda wall: wall.hour in {1, 2} and wall.minute % 20 == 0 and wall.weekday() == 6,
    "0 * * * *": lambda wall: wall.minute == 0,
    "0 */2 * * *": lambda wall: wall.hour % 2 == 0 and wall.minute == 0,
    "0 */6 * * *": lambda wall: wall.hour % 6 == 0 and wall.minute == 0,
}


@pytest.mark.parametrize("zone", [*ZONES, "Africa/Cairo"])  # Cairo changes at midnight
@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("expr", FREQUENT)
def test_a_frequent_entry_follows_the_clock_through_each_change(zone: str, year: int, expr: str) -> None:
    """Nothing in the gap, both passes of what is repeated, and nothing lost around it."""
    walk, changes = year_of(zone, year)
    assert len(changes) == 2
    for change in changes:
        start, end = change - 8 * HOUR, change + 12 * HOUR
        near = walk[bisect_right(walk, (start, datetime.max)) : bisect_left(walk, (end, datetime.min))]
        assert until(Cron(expr, tz=zone), start, end) == every_by_reference(near, FREQUENT[expr])


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("year", YEARS)
@pytest.mark.parametrize("expr", ["*/15 * * * *", "*/30 * * * *", "0 * * * *"])
def test_a_frequent_entry_follows_the_clock_all_year(zone: str, year: int, expr: str) -> None:
    """From samples over the whole year, at every hour and quarter."""
    walk, _ = year_of(zone, year)
    cron = Cron(expr, tz=zone)
    times = every_by_reference(walk, FREQUENT[expr])
    for at in range(0, len(times) - 1, 61):
        assert cron.next_after(times[at]).astimezone(UTC) == times[at + 1]


def test_berlin_by_hand() -> None:
    """The rule in plain sight, so that the reference itself is held against something."""
    daily = Cron("30 2 * * *", tz="Europe/Berlin")
    assert [str(time) for time in daily.preview(3, datetime(2026, 3, 28, tzinfo=BERLIN))] == [
        "2026-03-28 02:30:00+01:00",
        "2026-03-29 03:00:00+02:00",
        "2026-03-30 02:30:00+02:00",
    ]
    assert [str(time) for time in daily.preview(3, datetime(2026, 10, 24, tzinfo=BERLIN))] == [
        "2026-10-24 02:30:00+02:00",
        "2026-10-25 02:30:00+02:00",
        "2026-10-26 02:30:00+01:00",
    ]
    half_hourly = Cron("*/30 * * * *", tz="Europe/Berlin")
    assert [str(time) for time in half_hourly.preview(3, datetime(2026, 3, 29, 1, 10, tzinfo=BERLIN))] == [
        "2026-03-29 01:30:00+01:00",
        "2026-03-29 03:00:00+02:00",
        "2026-03-29 03:30:00+02:00",
    ]
    assert [str(time) for time in half_hourly.preview(5, datetime(2026, 10, 25, 1, 40, tzinfo=BERLIN))] == [
        "2026-10-25 02:00:00+02:00",
        "2026-10-25 02:30:00+02:00",
        "2026-10-25 02:00:00+01:00",
        "2026-10-25 02:30:00+01:00",
        "2026-10-25 03:00:00+01:00",
    ]


def test_lord_howe_by_hand() -> None:
    """Half an hour is skipped and repeated, and the hours of the rest of the day stay whole."""
    start = datetime(2026, 10, 4, 0, 10, tzinfo=ZoneInfo("Australia/Lord_Howe"))
    assert str(Cron("15 2 * * *", tz="Australia/Lord_Howe").next_after(start)) == "2026-10-04 02:30:00+11:00"
    assert str(Cron("0 */6 * * *", tz="Australia/Lord_Howe").next_after(start)) == "2026-10-04 06:00:00+11:00"
    start = datetime(2026, 4, 5, 1, 40, tzinfo=ZoneInfo("Australia/Lord_Howe"))
    assert [str(time) for time in Cron("*/15 * * * *", tz="Australia/Lord_Howe").preview(4, start)] == [
        "2026-04-05 01:45:00+11:00",
        "2026-04-05 01:30:00+10:30",
        "2026-04-05 01:45:00+10:30",
        "2026-04-05 02:00:00+10:30",
    ]


def test_a_daily_entry_asked_in_the_second_pass_answers_with_the_next_day() -> None:
    """It has run in the first pass; the past is no answer."""
    second_pass = datetime(2026, 10, 25, 2, 10, tzinfo=BERLIN, fold=1)
    assert str(Cron("30 2 * * *", tz=BERLIN).next_after(second_pass)) == "2026-10-26 02:30:00+01:00"


def test_a_rare_entry_finds_the_second_pass_of_its_only_day() -> None:
    """What is behind on the wall may still be ahead in time."""
    late = datetime(2026, 10, 25, 2, 50, tzinfo=BERLIN, fold=0)
    assert str(Cron("*/15 2 25 10 *", tz=BERLIN).next_after(late)) == "2026-10-25 02:00:00+01:00"


def test_a_skipped_day_runs_at_its_end() -> None:
    """Samoa had no 30 December 2011."""
    start = datetime(2011, 12, 29, 13, tzinfo=ZoneInfo("Pacific/Apia"))
    assert [str(time) for time in Cron("0 12 * * *", tz="Pacific/Apia").preview(2, start)] == [
        "2011-12-31 00:00:00+14:00",
        "2011-12-31 12:00:00+14:00",
    ]


def test_seconds_follow_the_same_rule() -> None:
    """Six fields begin with the seconds."""
    times = Cron("15 30 2 * * *", tz=BERLIN).preview(2, datetime(2026, 3, 29, tzinfo=BERLIN))
    assert [str(time) for time in times] == ["2026-03-29 03:00:00+02:00", "2026-03-30 02:30:15+02:00"]
    times = Cron("15 30 2 * * *", tz=BERLIN).preview(2, datetime(2026, 10, 25, tzinfo=BERLIN))
    assert [str(time) for time in times] == ["2026-10-25 02:30:15+02:00", "2026-10-26 02:30:15+01:00"]
    times = Cron("15 30 * * * *", tz=BERLIN).preview(2, datetime(2026, 10, 25, 2, tzinfo=BERLIN))
    assert [str(time) for time in times] == ["2026-10-25 02:30:15+02:00", "2026-10-25 02:30:15+01:00"]


exprs = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "30", "*/15", "*/7", "5,35,50", "*"]),
    st.sampled_from(["*", "2", "1-3", "*/2", "0", "23", "*/6"]),
    st.sampled_from(["*", "*", "1", "25-31", "L"]),
    st.sampled_from(["*", "*", "3,10", "4"]),
    st.sampled_from(["*", "*", "SUN", "1-5", "0L"]),
)


zones = st.sampled_from(
    [*ZONES, "UTC", "Africa/Cairo", "Africa/Casablanca", "Asia/Kathmandu", "Pacific/Chatham"]
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(expr=exprs, zone=zones, moment=moments, part=st.floats(0, 1, exclude_max=True))
def test_cron_times_rise_and_agree(expr: str, zone: str, moment: datetime, part: float) -> None:
    """Strictly after; the same from anywhere before it; preview is next_after again and again."""
    cron = Cron(expr, tz=zone)
    times = cron.preview(4, moment)
    before = moment
    for time in times:
        assert cron.next_after(before) == time
        assert time.astimezone(UTC) > before.astimezone(UTC)
        between = before.astimezone(UTC) + part * (time.astimezone(UTC) - before.astimezone(UTC))
        if between < time.astimezone(UTC):
            assert cron.next_after(between).astimezone(UTC) == time.astimezone(UTC)
        assert (time.second, time.microsecond) == (0, 0)
        before = time


def test_cron_answers_in_its_own_zone() -> None:
    """And takes the moment in any."""
    time = Cron("0 3 * * *", tz="Europe/Berlin").next_after(datetime(2026, 6, 1, tzinfo=timezone(9 * HOUR)))
    assert (time, time.tzinfo) == (datetime(2026, 6, 1, 3, tzinfo=BERLIN), BERLIN)
    assert Cron("0 3 * * *").next_after(NOON) == datetime(2026, 6, 2, 3, tzinfo=UTC)


def test_cron_is_strictly_after_a_match() -> None:
    """On the dot is over; a microsecond before is not."""
    cron = Cron("0 12 * * *")
    assert cron.next_after(NOON) == NOON + DAY
    assert cron.next_after(NOON - timedelta.resolution) == NOON


def test_a_leap_day_on_a_weekday_is_rare_but_fires() -> None:
    """The longest wait that there is: across 2100, which has no 29 February."""
    cron = Cron("0 0 */28 2 MON#5")
    assert cron.next_after(datetime(2072, 3, 1, tzinfo=UTC)) == datetime(2112, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    "expr",
    [
        "0 0 30 2 *",
        "0 0 31 4,6,9,11 *",
        "0 0 */31 * MON#2",  # the first of the month is never the second Monday
        "",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "*/0 * * * *",
        "5-1 * * * *",
        "every day",
        "@reboot",
        "0 0 0 * *",
        "9" * 5000 + " * * * *",
        None,
        5,
        b"* * * * *",
        ["* * * * *"],
    ],
)
def test_a_bad_expression_is_refused(expr: Any) -> None:
    """Wrong, or never firing: the error names the field and shows the value, on one line."""
    with pytest.raises(BadFieldsError) as caught:
        Cron(expr)
    assert str(caught.value).startswith("expr ")
    assert repr(expr) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_expression_that_lies_in_every_gap_is_refused() -> None:
    """It fires in UTC, but never in Berlin."""
    Cron("* 2 * 3 0L")
    with pytest.raises(BadFieldsError, match=r"expr .*never") as caught:
        Cron("* 2 * 3 0L", tz="Europe/Berlin")
    assert "within 50 years" in str(caught.value.__cause__)


Nothing: Any = tzinfo  # the bare base class


class Pytz(tzinfo):
    """Like pytz: local mean time unless it is asked with a time in UTC."""

    def utcoffset(self, at: datetime | None) -> timedelta:
        return timedelta(minutes=53)

    def dst(self, at: datetime | None) -> None:
        return None

    def tzname(self, at: datetime | None) -> str:
        return "LMT"

    def fromutc(self, at: datetime) -> datetime:
        return at + HOUR


@pytest.mark.parametrize(
    "tz",
    ["Mars/Base", "", "Europe", "../etc/passwd", "/etc/localtime", "a\0b", "ü", 5, None, Nothing(), Pytz()],
)
def test_a_bad_time_zone_is_refused(tz: Any) -> None:
    """The error names the field and shows the value."""
    with pytest.raises(BadFieldsError) as caught:
        Cron("* * * * *", tz=tz)
    assert str(caught.value).startswith("tz ")
    assert repr(tz) in str(caught.value)


def test_the_wall_time_of_a_cron_must_be_aware() -> None:
    """A clock that gives naive times would shift every tick."""
    with pytest.raises(BadFieldsError, match=r"^wall "):
        Cron("* * * * *").first_due(0.0, datetime(2026, 1, 1))


def test_cron_waits_for_its_first_match() -> None:
    """By the monotonic clock, for as long as the wall clock has to go."""
    due, beat = Cron("0 13 * * *").first_due(100.0, NOON)
    assert due == 3700.0
    due, _ = Cron("0 13 * * *").next_due(3701.0, NOON + timedelta(seconds=3601), beat)
    assert due == 3700.0 + 86400


@pytest.mark.parametrize("expr", ["0 13 * * *", "0 * * * *"])
def test_a_match_runs_once_though_the_alarm_was_early_by_the_wall_clock(expr: str) -> None:
    """The wall clock lost half a millisecond on the monotonic one."""
    cron = Cron(expr)
    due, beat = cron.first_due(100.0, NOON)
    early = NOON + HOUR - timedelta(microseconds=500)
    later, _ = cron.next_due(due, early, beat)
    assert later == due + (cron.next_after(NOON + HOUR) - early).total_seconds()


def test_an_extra_run_does_not_use_up_the_match() -> None:
    """A waiting cron entry that is sent again runs now, and its schedule goes on."""
    cron = Cron("0 13 * * *")
    due, beat = cron.first_due(100.0, NOON)
    again, beat = cron.next_due(160.0, NOON + MINUTE, beat)
    assert again == due
    assert cron.next_due(due, NOON + HOUR, beat)[0] == due + 86400


def run_for(cron: Cron, hours: int, back_at: float, back: timedelta) -> list[str]:
    """The wall times at which it runs when the wall clock is set back once, seconds after noon."""
    now, ran = 0.0, []
    due, beat = cron.first_due(now, NOON)
    while due <= hours * 3600:
        now = due
        wall = NOON + timedelta(seconds=now) - (back if now >= back_at else timedelta())
        ran.append(f"{wall:%H:%M}")
        due, beat = cron.next_due(now, wall, beat)
    return ran


def test_cron_goes_on_by_a_wall_clock_that_was_set_back() -> None:
    """A frequent entry follows it; a daily one does not run again for the same match, unless by a mere correction."""
    # Set back after the run of 13:00 was done, or while it waits for 13:00.
    assert run_for(Cron("0 * * * *"), 4, 3601, HOUR) == ["13:00", "13:00", "14:00", "15:00"]
    assert run_for(Cron("0 * * * *"), 4, 1800, HOUR) == ["12:00", "13:00", "14:00", "15:00"]
    assert run_for(Cron("*/30 * * * *"), 2, 1800, HOUR) == ["11:30", "12:00", "12:30", "13:00"]
    assert run_for(Cron("0 13 * * *"), 50, 1800, HOUR) == ["12:00", "13:00", "13:00"]
    assert run_for(Cron("0 13 * * *"), 50, 3600, DAY) == ["13:00", "13:00", "13:00"]


def test_cron_follows_a_wall_clock_that_was_set_forward() -> None:
    """What was jumped over is not made up for."""
    cron = Cron("*/10 * * * *")
    _, beat = cron.first_due(0.0, NOON)
    assert cron.next_due(600.0, NOON + 3 * HOUR + MINUTE, beat)[0] == 600.0 + 540


def test_a_wall_time_in_the_zone_of_the_cron_is_counted_in_real_time() -> None:
    """Two times of one zone differ by more than their wall clocks show."""
    due, _ = Cron("0 4 * * *", tz=BERLIN).first_due(0.0, datetime(2026, 3, 29, 1, tzinfo=BERLIN))
    assert due == 2 * 3600
