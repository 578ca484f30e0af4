"""Every, and what all schedules have in common; no test looks at the real time."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import inf, nan
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rate_envelope_queue import schedule as schedule_module
from rate_envelope_queue.errors import BadFieldsError
from rate_envelope_queue.schedule import Beat, Cron, Every, Schedule

from .support.instants import BERLIN, DAY, HOUR, MINUTE, NOON, moments


@pytest.mark.parametrize("schedule", [Every(5), Cron("* * * * *")], ids=repr)
@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), None, 5.0, "2026-01-01", NOON.date()])
def test_a_moment_must_be_aware(schedule: Schedule, moment: Any) -> None:
    """Naive, or no datetime at all."""
    with pytest.raises(BadFieldsError, match=r"^moment must be an aware datetime, got "):
        schedule.next_after(moment)
    if moment is not None:
        with pytest.raises(BadFieldsError, match=r"^start must be an aware datetime, got "):
            schedule.preview(0, moment)


@pytest.mark.parametrize("schedule", [Every(5), Cron("* * * * *")], ids=repr)
@pytest.mark.parametrize("n", [-1, 1.0, "3", None, True])
def test_preview_takes_a_count(schedule: Schedule, n: Any) -> None:
    """An integer, not negative."""
    with pytest.raises(BadFieldsError, match=r"^n must be an integer >= 0, got "):
        schedule.preview(n, NOON)


def test_preview_starts_after_its_start() -> None:
    """None, one or more."""
    assert Every(60).preview(0, NOON) == Cron("* * * * *").preview(0, NOON) == []
    assert (
        Every(60).preview(2, NOON) == Cron("* * * * *").preview(2, NOON) == [NOON + MINUTE, NOON + 2 * MINUTE]
    )


def test_preview_starts_now_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """In UTC."""

    class Frozen(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Frozen:
            assert tz is UTC
            return cls(2026, 6, 1, 12, tzinfo=UTC)

    monkeypatch.setattr(schedule_module, "datetime", Frozen)
    assert Every(60).preview(1) == [NOON + MINUTE]
    assert Every(60).preview(1)[0].tzinfo is UTC


@pytest.mark.parametrize("seconds", [0, -1, nan, inf, -inf, "5", None, True, timedelta(0), timedelta(-1)])
def test_every_takes_a_positive_duration(seconds: Any) -> None:
    """The error names the field and shows the value."""
    with pytest.raises(BadFieldsError, match=r"^seconds ") as caught:
        Every(seconds)
    assert repr(seconds) in str(caught.value)


@pytest.mark.parametrize("jitter", [-1, nan, inf, "5", None, False, timedelta(-1)])
def test_jitter_is_a_duration(jitter: Any) -> None:
    """The error names the field and shows the value."""
    with pytest.raises(BadFieldsError, match=r"^jitter ") as caught:
        Every(5, jitter=jitter)
    assert repr(jitter) in str(caught.value)


def test_fixed_rate_is_a_bool() -> None:
    """A number there is a mistake for another field."""
    wrong: Any = 5
    with pytest.raises(BadFieldsError, match=r"^fixed_rate .* 5$"):
        Every(5, fixed_rate=wrong)


def test_options_are_keyword_only() -> None:
    """So that a second number is never guessed at."""
    every: Any = Every
    cron: Any = Cron
    with pytest.raises(TypeError):
        every(5, 1)
    with pytest.raises(TypeError):
        cron("* * * * *", "UTC")


def test_every_adds_real_time_in_the_zone_of_the_moment() -> None:
    """Through a change of clocks, too."""
    time = Every(HOUR, jitter=9).next_after(datetime(2026, 3, 29, 1, 30, tzinfo=BERLIN))
    assert (str(time), time.tzinfo) == ("2026-03-29 03:30:00+02:00", BERLIN)


def test_every_is_after_the_moment_however_short() -> None:
    """A datetime knows no less than a microsecond."""
    assert Every(1e-9).next_after(NOON) == NOON + timedelta.resolution


def test_every_runs_at_once_and_then_from_the_end_of_each_run() -> None:
    """Whatever the wall clock says."""
    every = Every(5)
    due, beat = every.first_due(100.0, NOON)
    assert due == 100.0
    due, beat = every.next_due(102.5, NOON, beat)
    assert due == 107.5
    due, beat = every.next_due(300.0, NOON - DAY, beat)
    assert due == 305.0


def test_jitter_delays_by_its_share() -> None:
    """From nothing up to all of it; the beat of a fixed rate does not move."""
    assert Every(5, jitter=2).next_due(100.0, NOON, None, rand=lambda: 0.0)[0] == 105.0
    assert Every(5, jitter=2).next_due(100.0, NOON, None, rand=lambda: 0.75)[0] == 106.5
    fixed = Every(5, jitter=2, fixed_rate=True)
    _, beat = fixed.first_due(100.0, NOON)
    due, beat = fixed.next_due(100.0, NOON, beat, rand=lambda: 0.75)
    assert due == 106.5
    due, beat = fixed.next_due(106.6, NOON, beat, rand=lambda: 0.5)
    assert due == 111.0
    assert all(105 <= Every(5, jitter=2).next_due(100.0, NOON, None)[0] <= 107 for _ in range(20))


def test_fixed_rate_keeps_the_beat_and_skips_what_was_missed() -> None:
    """A run that ends on the beat or past it waits for the next."""
    every = Every(5, fixed_rate=True)
    due, beat = every.first_due(100.0, NOON)
    for end, expected in [(101.0, 105.0), (105.0, 110.0), (109.9, 110.0), (123.0, 125.0), (125.1, 130.0)]:
        due, beat = every.next_due(end, NOON, beat)
        assert due == expected


def test_fixed_rate_without_a_beat_counts_from_now() -> None:
    """As for an envelope that was first sent with a delay; the first tick itself never comes again."""
    assert Every(5, fixed_rate=True).next_due(100.0, NOON, None) == (105.0, 100.0)
    assert Every(5, fixed_rate=True).next_due(99.0, NOON, 100.0) == (105.0, 100.0)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    start=st.floats(0, 1e7),
    seconds=st.floats(1e-3, 1e5),
    runs=st.lists(st.floats(0, 3), max_size=30),
)
@example(start=0.0, seconds=0.1, runs=[0.0] * 30)
def test_fixed_rate_never_drifts_and_is_never_in_the_past(
    start: float, seconds: float, runs: list[float]
) -> None:
    """Each tick is on the beat to the last digits, ahead of now, and no further than one interval."""
    every = Every(seconds, fixed_rate=True)
    due, beat = every.first_due(start, NOON)
    for run in runs:
        now = due + run * seconds
        due, beat = every.next_due(now, NOON, beat)
        k = round((due - start) / seconds)
        assert due == start + k * seconds
        assert now < due
        assert k == 1 or start + (k - 1) * seconds <= now


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seconds=st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    start=st.floats(0, 1e9),
    passed=st.floats(0, 1e9),
)
def test_fixed_rate_ends_for_every_interval(seconds: float, start: float, passed: float) -> None:
    """Even one that a float can hardly hold."""
    due, _ = Every(seconds, fixed_rate=True).next_due(start + passed, NOON, start)
    assert start + passed < due < inf


@settings(max_examples=100, deadline=None, derandomize=True)
@given(seconds=st.floats(1e-7, 1e6), moment=moments, n=st.integers(0, 5))
def test_every_times_rise_and_agree(seconds: float, moment: datetime, n: int) -> None:
    """Preview is next_after again and again."""
    every = Every(seconds)
    before = moment
    for time in every.preview(n, moment):
        assert time == every.next_after(before) > before
        before = time


def test_the_interval_is_what_deadlines_are_held_against() -> None:
    """Cron has none."""
    assert Every(timedelta(minutes=1)).interval == 60.0
    assert Cron("* * * * *").interval == 0.0


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        (Every(5), "Every(5)"),
        (Every(0.25, jitter=1, fixed_rate=True), "Every(0.25, jitter=1, fixed_rate=True)"),
        (Every(1234567), "Every(1234567)"),
        (Cron("0 3 * * *", tz="Europe/Berlin"), "Cron('0 3 * * *', tz='Europe/Berlin')"),
        (Cron("0 3 * * *"), "Cron('0 3 * * *', tz='UTC')"),
        (Cron("0 3 * * *", tz=BERLIN), "Cron('0 3 * * *', tz='Europe/Berlin')"),
    ],
)
def test_repr_is_how_it_is_written(schedule: Schedule, text: str) -> None:
    """And reads back as an equal value."""
    assert repr(schedule) == text
    assert eval(text) == schedule


@pytest.mark.parametrize(
    "schedule", [Every(5, jitter=1), Cron("0 3 * * *", tz=timezone(HOUR)), Cron("0 3 * * *", tz=BERLIN)]
)
def test_copies_are_equal(schedule: Schedule) -> None:
    """Values survive a copy and a pickle, and go on working."""
    for twin in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
        assert twin == schedule
        assert hash(twin) == hash(schedule)
        assert twin.preview(2, NOON) == schedule.preview(2, NOON)


def test_equality_is_by_value() -> None:
    """Whichever way the value was written."""
    assert len({Every(60), Every(60.0), Every(MINUTE), Every(60, jitter=0)}) == 1
    assert len({Every(60), Every(61), Every(60, jitter=1), Every(60, fixed_rate=True)}) == 4
    assert len({Cron("0 3 * * *"), Cron("0 3 * * *", tz=UTC), Cron("0 3 * * *", tz=ZoneInfo("UTC"))}) == 1
    assert Cron("0 3 * * *", tz="Europe/Berlin") == Cron("0 3 * * *", tz=ZoneInfo.no_cache("Europe/Berlin"))
    assert len({Cron("0 3 * * *"), Cron("0 4 * * *"), Cron("0 3 * * *", tz=BERLIN)}) == 3


@pytest.mark.parametrize("schedule", [Every(5), Cron("* * * * *")], ids=repr)
def test_schedules_are_frozen_and_slotted(schedule: Any) -> None:
    """Nothing to change, nowhere to add."""
    for name in schedule.__slots__:
        with pytest.raises(AttributeError):
            setattr(schedule, name, 3)
    for name in ("interval", "other"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(schedule, name, 3)
    assert not hasattr(schedule, "__dict__")


def test_the_queue_may_keep_any_schedule() -> None:
    """Both fit the protocol, and their beats are one type."""
    schedules: list[Schedule] = [Every(5, fixed_rate=True), Cron("* * * * *")]
    beats: list[Beat] = [schedule.first_due(0.0, NOON)[1] for schedule in schedules]
    assert all(beat is not None for beat in beats)


def test_without_cronsim_only_cron_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "cronsim", None)
    assert Every(5).preview(1, NOON)
    with pytest.raises(ImportError, match=r"pip install 'rate-envelope-queue\[cron\]'"):
        Cron("* * * * *")


def test_importing_the_module_imports_no_cronsim() -> None:
    """The package has no dependencies."""
    code = "import sys, rate_envelope_queue.schedule; sys.exit('cronsim' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
