"""When schedules tick: held against counting by hand, and against a calendar that is walked step by step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from math import inf, nan
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobpipe import BadInputError, Missed
from jobpipe.errors import seconds_of
from jobpipe.model.ids import check_id
from jobpipe.model.schedule import LATE, Timing, following, is_missed, placed, preview, tick_id
from jobpipe.stores.base import ScheduleEntry

START = 1_800_000_000.25
QUARTER = timedelta(minutes=15)
DAY = timedelta(days=1)


def entry(**fields: Any) -> ScheduleEntry:
    return ScheduleEntry(name="s", type="echo", queue="default", payload=b"null", **fields)


# Every


@given(
    anchor=st.floats(0, 4e9),
    every=st.floats(0.1, 366 * 86_400),
    ticks=st.floats(-3, 1e6),
    nudge=st.sampled_from([0.0, 1e-6, -1e-6]),
)
def test_a_tick_of_every_is_the_first_of_its_beats_after_the_moment(
    anchor: float, every: float, ticks: float, nudge: float
) -> None:
    moment = anchor + ticks * every + nudge
    count = max(int(ticks) - 3, 1)
    while anchor + count * every <= moment:
        count += 1
    assert Timing(every=every).next_after(moment, anchor) == anchor + count * every


@given(anchor=st.floats(0, 4e9), every=st.floats(0.1, 366 * 86_400), count=st.integers(0, 10**6))
def test_a_tick_is_never_its_own_next(anchor: float, every: float, count: int) -> None:
    """Asked with the very float that it gave, it gives the next beat, and leaves none out."""
    tick = anchor + count * every
    assert Timing(every=every).next_after(tick, anchor) == anchor + (count + 1) * every


@pytest.mark.parametrize("every", [0.1, 1 / 3, 7.7, 60.0])
def test_every_does_not_drift(every: float) -> None:
    now = placed(entry(every=every), START)
    for _ in range(10_000):
        now = entry(every=every, anchor_at=now.anchor_at, next_at=following(now, now.next_at))
    assert now.next_at == START + 10_001 * every


def test_every_begins_one_interval_after_it_was_put_in() -> None:
    begun = placed(entry(every=60.0), START)
    assert (begun.anchor_at, begun.next_at) == (START, START + 60)


@pytest.mark.parametrize("late", [0.0, 0.5, 59.0, 60.0, 86_400.0])
def test_what_follows_is_still_to_come_and_on_the_beat(late: float) -> None:
    begun = placed(entry(every=60.0), START)
    now = begun.next_at + late
    assert now < following(begun, now) <= now + 60
    assert (following(begun, now) - START) % 60 == 0


def test_what_follows_is_after_the_tick_though_the_clock_was_set_back() -> None:
    begun = placed(entry(every=60.0), START)
    assert following(begun, START - 3600) == START + 120


# Cron, over every change of the clocks in a year


@cache
def year_of(zone: str) -> tuple[list[tuple[datetime, datetime]], list[datetime]]:
    """2027 by quarter-hours: each instant with what the wall clock shows; and the instants of the changes."""
    tz, moment = ZoneInfo(zone), datetime(2027, 1, 1, tzinfo=UTC)
    walk = []
    while moment.year == 2027:
        walk.append((moment, moment.astimezone(tz).replace(tzinfo=None)))
        moment += QUARTER
    return walk, [after[0] for before, after in pairwise(walk) if after[1] - before[1] != QUARTER]


ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]


def ticks_of(timing: Timing, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    moment = start.timestamp()
    while (moment := timing.next_after(moment, 0.0)) < end.timestamp():
        found.append(datetime.fromtimestamp(moment, UTC))
    return found


@pytest.mark.parametrize("zone", ZONES)
def test_a_daily_cron_ticks_once_a_day_all_year(zone: str) -> None:
    """At 02:30: at the end of the gap where that is skipped, the first time where it comes twice."""
    walk, changes = year_of(zone)
    assert len(changes) == 2
    wanted: dict[Any, datetime] = {}
    for moment, wall in walk:
        if (wall.hour, wall.minute) >= (2, 30):
            wanted.setdefault(wall.date(), moment)
    first = walk[0][1]
    if (first.hour, first.minute) >= (2, 30):
        del wanted[first.date()]  # it was before the year of the walk
    found = ticks_of(Timing(cron="30 2 * * *", tz=zone), walk[0][0], walk[-1][0] + QUARTER)
    assert found == list(wanted.values())
    assert len(found) in (364, 365)


@pytest.mark.parametrize("zone", ZONES)
def test_a_quarter_hourly_cron_follows_the_clock_through_each_change(zone: str) -> None:
    """Nothing is left out, nothing comes twice, and what the clock shows twice ticks twice."""
    walk, changes = year_of(zone)
    for change in changes:
        start, end = change - DAY, change + DAY
        wanted = [moment for moment, wall in walk if start < moment < end and wall.minute % 15 == 0]
        assert ticks_of(Timing(cron="*/15 * * * *", tz=zone), start, end) == wanted
        assert len(wanted) == 2 * 96 - 1


def test_the_nights_of_berlin_by_hand() -> None:
    """The reference itself is held against something."""
    daily = Timing(cron="30 2 * * *", tz="Europe/Berlin")
    for start, wanted in [
        (datetime(2027, 3, 27, 12, tzinfo=UTC), ["2027-03-28 01:00", "2027-03-29 00:30"]),
        (datetime(2027, 10, 30, 12, tzinfo=UTC), ["2027-10-31 00:30", "2027-11-01 01:30"]),
    ]:
        assert [f"{each:%Y-%m-%d %H:%M}" for each in ticks_of(daily, start, start + 2 * DAY)] == wanted


# Looking ahead


@pytest.mark.parametrize(
    "timing", [{"every": 0.1}, {"every": 86_400.0}, {"cron": "0 3 * * *", "tz": "Asia/Tokyo"}]
)
def test_a_preview_is_the_next_five_ticks(timing: dict[str, Any]) -> None:
    shown = placed(entry(**timing), START)
    moments = preview(shown)
    assert moments[0].timestamp() == pytest.approx(shown.next_at, abs=1e-6)
    later = shown
    for moment in moments:
        assert moment.timestamp() == pytest.approx(later.next_at, abs=1e-6)
        later = entry(**timing, anchor_at=shown.anchor_at, next_at=following(later, later.next_at))
    assert len(set(moments)) == 5


def test_a_tick_that_nobody_was_there_for_is_missed_where_that_is_wished() -> None:
    for missed, late, is_it in [
        (Missed.NONE, LATE + 0.1, True),
        (Missed.NONE, LATE, False),
        (Missed.ONE, LATE + 86_400, False),
    ]:
        assert is_missed(entry(every=60.0, next_at=START, missed=missed), START + late) is is_it


def test_the_id_of_a_tick_says_which_one_it_is() -> None:
    assert tick_id("nightly", 1_800_000_000.0) == "nightly@2027-01-15T08:00:00Z"
    assert tick_id("nightly", 1_800_000_000.25) == "nightly@2027-01-15T08:00:00.250000Z"
    check_id(tick_id("n" * 100, 1_800_000_000.25))


def test_ids_of_the_fastest_ticks_differ() -> None:
    ticks = [START + count * 0.1 for count in range(1_000)]
    assert len({tick_id("s", tick) for tick in ticks}) == 1_000


# What is refused


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "every"),
        ({"every": 5.0, "cron": "* * * * *"}, "every"),
        ({"tz": "UTC"}, "every"),
        ({"every": 5.0, "tz": "UTC"}, "tz"),
        *(({"every": each}, "every") for each in (0.0, -1.0, 0.09, 366 * 86_400.0 + 1, nan, inf, -inf)),
        *(
            ({"cron": each}, "cron")
            for each in ("", "* * * *", "60 * * * *", "@reboot", "every day", "\0", "\ud800 * * * *")
        ),
        ({"cron": "0 0 30 2 *"}, "cron"),  # never
        ({"cron": "* 2 * 3 0L", "tz": "Europe/Berlin"}, "cron"),  # only in the gap
        *(
            ({"cron": "* * * * *", "tz": each}, "tz")
            for each in ("", "Europe", "Mars/Base", "../etc/passwd", "/etc/localtime", "a\0b", "\ud800", "ü")
        ),
    ],
)
def test_a_wrong_timing_is_refused_with_its_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInputError) as caught:
        Timing(**given)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} ")
    assert "\n" not in str(caught.value)


def test_an_interval_is_a_number_or_a_timedelta() -> None:
    given: list[float | timedelta] = [5, 0.5, timedelta(minutes=1), timedelta(0)]
    assert [seconds_of("every", each) for each in given] == [5.0, 0.5, 60.0, 0.0]
    wrong: list[Any] = ["5", None, True, -1, inf, nan, timedelta(seconds=-1)]
    for each in wrong:
        with pytest.raises(BadInputError, match=r"^every must be a number of seconds"):
            seconds_of("every", each)
