"""Schedules that are paused and resumed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from jobpipe import (
    Missed,
    ScheduleInfo,
    ScheduleNotFoundError,
)
from jobpipe.model.schedule import tick_id
from jobpipe.stores.base import ScheduleEntry
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing import ManualTime

from ...support.waiting import run
from .schedule_bench import DAY, Bench


def test_a_paused_schedule_puts_nothing_in_and_is_not_waited_for(bench: Bench) -> None:
    bench.put("held", every=1)
    bench.put("free", every=60)
    paused = run(bench.pipe.schedules.pause("held"))
    assert (paused.paused, paused.next_at) == (True, [])
    assert run(bench.pipe.schedules.get("held")) == paused
    bench.time.elapse(90)
    assert bench.tick() == pytest.approx(30)
    assert [id[:5] for id in bench.ids()] == ["free@"]
    run(bench.pipe.schedules.drop("free"))
    assert bench.tick() is None, "there is nothing to come back for before the usual second"


@pytest.mark.parametrize("missed", list(Missed))
def test_a_resumed_schedule_goes_on_with_the_next_tick_and_has_missed_none(
    bench: Bench, missed: Missed
) -> None:
    begun = bench.put(every=60, missed=missed)
    run(bench.pipe.schedules.pause("s"))
    bench.time.elapse(DAY + 30)
    resumed = run(bench.pipe.schedules.resume("s"))
    assert not resumed.paused
    assert resumed.next_at[0] == begun.next_at[0] + timedelta(days=1)
    assert len(resumed.next_at) == 5
    assert bench.tick() == pytest.approx(30)
    assert bench.ids() == []
    bench.time.elapse(30)
    bench.tick()
    assert bench.ids() == [tick_id("s", resumed.next_at[0].timestamp())]


def test_a_cron_goes_on_with_its_next_time_of_day(bench: Bench) -> None:
    bench.time.elapse(datetime(2027, 10, 29, 12, tzinfo=UTC).timestamp() - bench.time())
    bench.put(cron="30 2 * * *", tz="Europe/Berlin")
    run(bench.pipe.schedules.pause("s"))
    bench.time.elapse(3 * DAY)
    resumed = run(bench.pipe.schedules.resume("s"))
    assert resumed.next_at[0] == datetime(2027, 11, 2, 1, 30, tzinfo=UTC)


def test_a_pause_between_two_ticks_moves_none(bench: Bench) -> None:
    begun = bench.put(every=60)
    bench.time.elapse(20)
    run(bench.pipe.schedules.pause("s"))
    bench.time.elapse(20)
    assert run(bench.pipe.schedules.resume("s")) == begun
    assert run(bench.pipe.schedules.resume("s")) == begun, "a second time changes nothing"


def test_a_paused_schedule_runs_by_hand(bench: Bench) -> None:
    bench.put(every=60, payload="by hand")
    paused = run(bench.pipe.schedules.pause("s"))
    receipt = run(bench.pipe.schedules.run("s"))
    assert run(bench.pipe.get(receipt.id)).payload == "by hand"
    assert run(bench.pipe.schedules.get("s")) == paused


def test_what_is_not_there_is_neither_paused_nor_resumed(bench: Bench) -> None:
    for verb in (bench.pipe.schedules.pause, bench.pipe.schedules.resume):
        with pytest.raises(ScheduleNotFoundError, match="'s'"):
            run(verb("s"))


def test_a_restart_and_a_change_undo_no_pause(bench: Bench) -> None:
    def started(every: float) -> ScheduleInfo:
        pipe = bench.another()
        pipe.every(every, name="clean")(lambda: None)
        pipe.schedules.register(pipe.store)
        (info,) = run(pipe.schedules.all())
        pipe.close()
        return info

    assert not started(60).paused
    run(bench.pipe.schedules.pause("clean"))
    bench.time.elapse(600)
    for every in (60, 60, 7):
        assert started(every).paused
    assert bench.put("clean", every=9).paused
    assert bench.tick() is None
    assert bench.ids() == []


class PausedMeanwhile(MemoryStore):
    """Somebody pauses every schedule between the look at it and its tick."""

    def fire_tick(self, name: str, *args: Any, **options: Any) -> Any:
        self.pause_schedule(name)
        return super().fire_tick(name, *args, **options)


def test_a_pause_after_the_look_lets_no_tick_through() -> None:
    bench = Bench(lambda time: PausedMeanwhile(clock=time))
    bench.put(every=60)
    bench.time.elapse(60)
    bench.tick()
    assert bench.ids() == []
    assert bench.tick() is None
    bench.pipe.close()


class ChangedMeanwhile(MemoryStore):
    """Somebody gives the schedule another timing between the look at it and its resumption."""

    change: ScheduleEntry | None = None

    def resume_schedule(self, name: str, tick_at: float, next_at: float) -> bool:
        if self.change is not None:
            self.put_schedule(self.change)
        self.change = None
        return super().resume_schedule(name, tick_at, next_at)


def test_a_resumed_schedule_ticks_by_the_timing_that_it_has_by_then() -> None:
    store = ChangedMeanwhile(clock=ManualTime(1_000.0))
    bench = Bench(lambda _: store)
    bench.put(every=60)
    run(bench.pipe.schedules.pause("s"))
    (entry,) = store.schedules().entries
    store.change = replace(entry, every=7.0, anchor_at=1_000.0, next_at=1_007.0)
    resumed = run(bench.pipe.schedules.resume("s"))
    assert (resumed.paused, resumed.every, resumed.next_at[0].timestamp()) == (False, 7.0, 1_007.0)
    bench.pipe.close()
