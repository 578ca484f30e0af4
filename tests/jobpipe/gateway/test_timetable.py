"""The timetable: what the program declares and what is put in, and one job a tick, whoever ticks."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from jobpipe import (
    BadInputError,
    Job,
    Jobpipe,
    JobStatus,
    Missed,
    PayloadTooLargeError,
    QueueFullError,
    ScheduleInfo,
    ScheduleNotFoundError,
    ScheduleRequest,
    StoreAwayError,
)
from jobpipe.model.ticks import LATE, tick_id
from jobpipe.stores.base import ScheduleEntry, Store
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import ManualTime
from jobpipe.testing.tools import page_ids, together

from ..conftest import finished, run, seen

HOUR, DAY = 3600.0, 86_400.0


class Bench:
    """A pipe on a store whose clock is moved by hand; nothing ticks unless it is told to."""

    def __init__(self, make_store: Callable[[ManualTime], Store], now: float = 1_800_000_000.25) -> None:
        self.time = ManualTime(now)
        self.store = make_store(self.time)
        self.store.migrate()
        self._given = [self.store]
        self.pipe = self.another()

    def another(self, **settings: Any) -> Jobpipe:
        """Another process on the same store."""
        self._given.append(self.store.sibling())
        return Jobpipe(self._given[-1], **settings)

    def close(self) -> None:
        """Why the stores: one that was given to a pipe is not the pipe's to close."""
        self.pipe.close()
        for store in self._given:
            store.close()

    def put(self, name: str = "s", /, **fields: Any) -> ScheduleInfo:
        request = ScheduleRequest(**({"type": "echo"} | fields))
        return run(self.pipe.schedules.put(name, request))

    def tick(self, pipe: Jobpipe | None = None) -> float | None:
        ticking = pipe or self.pipe
        return ticking.schedules.tick(ticking.store)

    def ids(self) -> list[str]:
        """Of all jobs, oldest first."""
        return page_ids(self.store)[::-1]


@pytest.fixture(params=["memory", "sqlite"])
def bench(request: pytest.FixtureRequest, away_from_home: Path) -> Any:
    def sqlite(time: ManualTime) -> Store:
        return SqliteStore(away_from_home / "jobs.db", clock=time)

    made = Bench(sqlite if request.param == "sqlite" else lambda time: MemoryStore(clock=time))
    with closing(made):
        yield made


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]


# Ticking


def test_a_tick_that_is_due_puts_in_its_job(bench: Bench) -> None:
    info = bench.put(every=60, payload={"x": 1}, queue="q")
    assert bench.tick() == pytest.approx(60)
    assert bench.ids() == []
    bench.time.elapse(60)
    assert bench.tick() == pytest.approx(60)
    assert bench.tick() == pytest.approx(60)
    (id,) = bench.ids()
    job = run(bench.pipe.get(id))
    assert (job.type, job.queue, job.payload, job.status) == ("echo", "q", {"x": 1}, JobStatus.QUEUED)
    assert id == tick_id("s", info.next_at[0].timestamp())
    now = run(bench.pipe.schedules.get("s"))
    assert (now.last_at, now.last_job, now.next_at[0]) == (info.next_at[0], id, info.next_at[1])


def test_without_schedules_there_is_nothing_to_wait_for(bench: Bench) -> None:
    assert bench.tick() is None


def test_the_next_tick_is_that_of_the_soonest_schedule(bench: Bench) -> None:
    bench.put("slow", every=60)
    bench.put("fast", every=7)
    assert bench.tick() == pytest.approx(7)
    bench.time.elapse(57)
    assert bench.tick() == pytest.approx(3)
    assert len(bench.ids()) == 1


@pytest.mark.parametrize(("missed", "jobs"), [("one", 1), ("none", 0)])
def test_a_day_on_which_nothing_ran_is_one_job_or_none(bench: Bench, missed: str, jobs: int) -> None:
    info = bench.put(every=60, missed=Missed(missed))
    bench.time.elapse(DAY + 30)
    assert bench.tick() == pytest.approx(30)
    assert bench.ids() == [tick_id("s", info.next_at[0].timestamp())][:jobs]
    bench.time.elapse(30)
    bench.tick()
    assert len(bench.ids()) == jobs + 1, "the next one is no longer missed"


@pytest.mark.parametrize("late", [0.0, 1.0, LATE])
def test_a_tick_that_is_a_little_late_is_not_missed(bench: Bench, late: float) -> None:
    bench.put(every=60, missed=Missed.NONE)
    bench.time.elapse(60 + late)
    bench.tick()
    assert len(bench.ids()) == 1


def test_a_daily_job_runs_once_a_night_while_the_clocks_change(bench: Bench) -> None:
    """The nights around the last Sunday of October in Berlin, with a look every quarter of an hour."""
    bench.time.elapse(datetime(2027, 10, 29, 12, tzinfo=UTC).timestamp() - bench.time())
    bench.put(cron="30 2 * * *", tz="Europe/Berlin")
    for _ in range(3 * 96):
        bench.time.elapse(HOUR / 4)
        bench.tick()
    assert bench.ids() == [
        "s@2027-10-30T00:30:00Z",
        "s@2027-10-31T00:30:00Z",
        "s@2027-11-01T01:30:00Z",
    ]


def test_five_timetables_on_one_file_put_in_one_job_a_tick(away_from_home: Path) -> None:
    """Each has a handle of its own, and all of them tick at once."""
    bench = Bench(lambda time: SqliteStore(away_from_home / "jobs.db", clock=time))
    with ExitStack() as stack:
        stack.enter_context(closing(bench))
        five = [stack.enter_context(closing(bench.another(queue_size=0))) for _ in range(5)]
        info = bench.put(every=1, payload=1)
        bench.put("cron", cron="* * * * * *")
        first = info.next_at[0].timestamp()
        for _ in range(30):
            bench.time.elapse(1)
            together([partial(bench.tick, pipe) for pipe in five])
        found = bench.ids()
        assert [id for id in found if id.startswith("s@")] == [tick_id("s", first + n) for n in range(30)]
        assert len(set(found)) == len(found) == 60


def test_a_tick_waits_for_room_and_is_one_job_then(bench: Bench) -> None:
    info = bench.put(every=60)
    small = bench.another(queue_size=1)
    run(small.enqueue("echo", id="before"))
    bench.time.elapse(60)
    for _ in range(5):
        assert bench.tick(small) is None, "it is looked for again, as soon as one looks"
        bench.time.elapse(60)
    run(small.cancel("before"))
    assert bench.tick(small) == pytest.approx(60)
    assert bench.ids() == ["before", tick_id("s", info.next_at[0].timestamp())]
    small.close()


def test_a_full_queue_holds_up_no_schedule_of_another(bench: Bench) -> None:
    bench.put("a", every=60)
    bench.put("b", every=60, queue="other")
    small = bench.another(queue_size=1)
    run(small.enqueue("echo", id="before"))
    bench.time.elapse(60)
    assert bench.tick(small) == pytest.approx(60)
    assert [id[:2] for id in bench.ids()] == ["be", "b@"]
    small.close()


def test_a_tick_whose_id_is_taken_is_left_out_with_a_line(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    id = tick_id("s", bench.put(every=60).next_at[0].timestamp())
    run(bench.pipe.enqueue("echo", "other", id=id))
    bench.time.elapse(60)
    assert bench.tick() == pytest.approx(60)
    assert bench.ids() == [id]
    (line,) = complaints(caplog)
    assert line.startswith(f"skipped a tick of schedule s: the id '{id}' is taken")
    bench.time.elapse(60)
    bench.tick()
    assert len(bench.ids()) == 2


def test_a_schedule_whose_type_takes_its_payload_no_longer_logs_and_goes_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.put("a", type="count", payload={"x": 1}, every=60)
    bench.put("b", every=60)
    newer = bench.another()

    @newer.job("count")
    def count(number: int) -> int:
        return number

    bench.time.elapse(60)
    assert bench.tick(newer) == pytest.approx(60)
    assert [id[:2] for id in bench.ids()] == ["b@"]
    (line,) = complaints(caplog)
    assert line.startswith("schedule a cannot enqueue its job: payload ")
    with pytest.raises(BadInputError) as caught:
        run(newer.schedules.run("a"))
    assert caught.value.field.startswith("payload")
    run(newer.schedules.put("a", ScheduleRequest(type="count", payload=5, every=60)))
    bench.time.elapse(60)
    bench.tick(newer)
    assert [id[:2] for id in bench.ids()] == ["b@", "a@", "b@"]
    newer.close()


def test_an_entry_that_nobody_can_read_stops_no_other(
    away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as one with a time zone that this machine does not know."""
    bench = Bench(lambda time: SqliteStore(away_from_home / "jobs.db", clock=time))
    with closing(bench):
        for name in ("a", "b", "c"):
            bench.put(name, cron="* * * * *")
        with closing(sqlite3.connect(away_from_home / "jobs.db")) as connection, connection:
            connection.execute("UPDATE schedules SET tz = 'Mars/Base' WHERE name = 'a'")
            connection.execute("UPDATE schedules SET payload = 'no JSON' WHERE name = 'b'")
        for _ in range(2):
            bench.time.elapse(60)
            assert bench.tick() is not None
        assert [id[:2] for id in bench.ids()] == ["c@", "c@"]
        assert sorted(line[:56] for line in complaints(caplog)) == [
            "schedule a in the store is invalid and does not run: tz ",
            "schedule b in the store is invalid and does not run: JSO",
        ]
        run(bench.pipe.schedules.drop("b"))
        shown = run(bench.pipe.schedules.all())
        assert [(info.name, len(info.next_at)) for info in shown] == [("a", 1), ("c", 5)]


def test_a_store_that_is_away_is_told_to_who_ticks(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put(every=60)
    bench.time.elapse(60)

    def away(*_: Any, **__: Any) -> Any:
        raise StoreAwayError("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(type(bench.pipe.store), "fire_tick", away)
        with pytest.raises(StoreAwayError):
            bench.tick()
    bench.tick()
    assert len(bench.ids()) == 1


# Putting in, looking, dropping


def test_a_schedule_is_put_in_seen_and_dropped(bench: Bench) -> None:
    made = bench.put("nightly", cron="0 3 * * *", tz="Europe/Berlin", payload=[1], missed=Missed.NONE)
    assert (made.name, made.type, made.queue, made.payload) == ("nightly", "echo", "default", [1])
    assert (made.every, made.cron, made.tz, made.missed) == (None, "0 3 * * *", "Europe/Berlin", "none")
    assert (made.last_at, made.last_job) == (None, None)
    assert [f"{at:%H:%M}" for at in made.next_at] == ["02:00"] * 5, "in UTC, in winter"
    assert run(bench.pipe.schedules.get("nightly")) == made
    bench.put("also", every=5)
    assert [info.name for info in run(bench.pipe.schedules.all())] == ["also", "nightly"]
    run(bench.pipe.schedules.drop("nightly"))
    for verb in (bench.pipe.schedules.get, bench.pipe.schedules.drop, bench.pipe.schedules.run):
        with pytest.raises(ScheduleNotFoundError) as caught:
            run(verb("nightly"))
        assert caught.value.name == "nightly"


def test_a_cron_without_a_time_zone_is_in_utc(bench: Bench) -> None:
    assert bench.put(cron="0 3 * * *").tz == "UTC"
    bench.time.elapse(HOUR)
    again = bench.put(cron="0 3 * * *", tz="UTC")
    assert again.next_at[0].hour == 3


def test_a_change_that_leaves_the_timing_keeps_the_ticks(bench: Bench) -> None:
    before = bench.put(every=60)
    bench.time.elapse(30)
    assert bench.put(every=60, payload=2).next_at == before.next_at
    assert bench.put(every=50).next_at[0] == before.next_at[0] + timedelta(seconds=20)


def test_a_run_by_hand_is_beside_the_ticks(bench: Bench) -> None:
    before = bench.put(every=60, payload=7, queue="q")
    receipt = run(bench.pipe.schedules.run("s"))
    assert receipt.is_new
    job = run(bench.pipe.get(receipt.id))
    assert (job.type, job.queue, job.payload) == ("echo", "q", 7)
    assert run(bench.pipe.schedules.get("s")) == before


def test_a_run_by_hand_needs_room(bench: Bench) -> None:
    bench.put(every=60)
    small = bench.another(queue_size=1)
    run(small.schedules.run("s"))
    with pytest.raises(QueueFullError):
        run(small.schedules.run("s"))
    small.close()


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"every": 5, "cron": "* * * * *"}, "every"),
    ({}, "every"),
    ({"every": 0}, "every"),
    ({"every": "5"}, "every"),
    ({"every": None, "cron": "* * * * *"}, "every"),
    ({"every": 5, "tz": "UTC"}, "tz"),
    ({"cron": "0 0 30 2 *"}, "cron"),
    ({"cron": "*" * 201}, "cron"),
    ({"cron": "* * * * *", "tz": "Mars/Base"}, "tz"),
    ({"cron": "* * * * *", "tz": "E" * 101}, "tz"),
    ({"every": 5, "missed": "two"}, "missed"),
    ({"every": 5, "type": "a b"}, "type"),
    ({"every": 5, "queue": ""}, "queue"),
    ({"every": 5, "payload": "\ud800"}, "payload"),
    ({"every": 5, "payload": "x" * 300_000}, "payload"),
]


@pytest.mark.parametrize(("fields", "field"), WRONG)
def test_what_is_wrong_is_refused_with_its_field(
    away_from_home: Path, fields: dict[str, Any], field: str
) -> None:
    bench = Bench(lambda time: MemoryStore(clock=time))
    with pytest.raises(BadInputError) as caught:
        bench.put(**fields)
    assert caught.value.field == field
    assert isinstance(caught.value, PayloadTooLargeError) == (len(str(fields)) > 100_000)
    assert len(str(caught.value)) < 400
    assert bench.store.schedules().entries == []
    bench.pipe.close()


def test_an_expression_that_is_long_looked_at_holds_nobody_up() -> None:
    """It is found to lie in every gap of fifty years, second by second, while the event loop goes on."""
    pipe = Jobpipe("memory://")

    async def scenario() -> None:
        request = ScheduleRequest(type="echo", cron="* * 2 * 3 0L", tz="Europe/Berlin")
        putting = asyncio.create_task(pipe.schedules.put("s", request))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not putting.done()
        with pytest.raises(BadInputError, match="never"):
            await putting

    run(scenario())
    pipe.close()


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 101, ".x"])
def test_a_wrong_name_is_refused(away_from_home: Path, name: str) -> None:
    bench = Bench(lambda time: MemoryStore(clock=time))
    with pytest.raises(BadInputError) as caught:
        bench.put(name, every=5)
    assert caught.value.field == "name"
    bench.pipe.close()


# What the program declares


def test_a_function_is_scheduled_under_its_name(bench: Bench) -> None:
    pipe = bench.pipe

    @pipe.every(timedelta(minutes=1), queue="q", max_retries=0, missed="none")
    async def clean() -> str:
        return "cleaned"

    @pipe.cron("0 3 * * *", tz="Europe/Berlin", name="nightly")
    def report() -> None: ...

    assert asyncio.run(clean()) == "cleaned", "it can still be called"
    assert {"clean", "nightly"} <= pipe.types.keys()
    pipe.schedules.register(pipe.store)
    first, second = run(pipe.schedules.all())
    assert (first.name, first.type, first.queue, first.every, first.missed) == (
        "clean",
        "clean",
        "q",
        60,
        "none",
    )
    assert (second.name, second.type, second.cron, second.tz) == (
        "nightly",
        "nightly",
        "0 3 * * *",
        "Europe/Berlin",
    )
    assert (second.missed, second.payload) == ("one", None)
    bench.time.elapse(60)
    bench.tick()
    (id,) = bench.ids()
    assert run(pipe.get(id)).max_retries == 0


def test_a_restart_keeps_the_ticks_and_takes_over_what_changed(bench: Bench) -> None:
    def started(**options: Any) -> list[datetime]:
        pipe = bench.another()
        pipe.every(60, name="clean", **options)(lambda: None)
        pipe.schedules.register(pipe.store)
        (info,) = run(pipe.schedules.all())
        pipe.close()
        return info.next_at

    first = started()
    bench.time.elapse(45)
    assert started() == first
    assert started(queue="other", missed=Missed.NONE) == first
    (info,) = run(bench.pipe.schedules.all())
    assert (info.queue, info.missed) == ("other", Missed.NONE)


Refused = Callable[[Jobpipe], object]


@pytest.mark.parametrize(
    ("declare", "field"),
    [
        (lambda pipe: pipe.every(60)(lambda payload: None), "name"),  # a lambda has none
        (lambda pipe: pipe.every(60, name="a")(lambda payload: None), "handler"),
        (lambda pipe: pipe.cron("* * * * *", name="a")(lambda payload=1: None), "handler"),
        (lambda pipe: pipe.every(60, name="a")(lambda x, y: None), "handler"),
        (lambda pipe: pipe.every(60, name="a b")(lambda: None), "name"),
        (lambda pipe: pipe.every(60)(partial(print)), "name"),
        (lambda pipe: pipe.every(0, name="a")(lambda: None), "every"),
        (lambda pipe: pipe.every("60", name="a")(lambda: None), "every"),
        (lambda pipe: pipe.cron("x", name="a")(lambda: None), "cron"),
        (lambda pipe: pipe.cron("* * * * *", tz="Mars/Base", name="a")(lambda: None), "tz"),
        (lambda pipe: pipe.cron("* * * * *", tz=None, name="a")(lambda: None), "tz"),
        (lambda pipe: pipe.every(60, missed="two", name="a")(lambda: None), "missed"),
        (lambda pipe: pipe.every(60, queue="a b", name="a")(lambda: None), "queue"),
        (lambda pipe: pipe.every(60, name="taken")(lambda: None), "name"),
        (lambda pipe: pipe.every(60, name="job")(lambda: None), "the name of the job type"),
    ],
)
def test_what_cannot_be_a_schedule_is_refused_and_leaves_nothing_behind(declare: Refused, field: str) -> None:
    pipe = Jobpipe("memory://")
    pipe.every(60, name="taken")(lambda: None)
    pipe.job("job")(lambda: None)
    known = set(pipe.types)
    with pytest.raises(BadInputError) as caught:
        declare(pipe)
    assert caught.value.field == field
    assert set(pipe.types) == known
    pipe.schedules.register(pipe.store)
    assert [info.name for info in run(pipe.schedules.all())] == ["taken"]
    pipe.close()


# Pauses


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


# For real


def test_a_program_that_starts_again_leaves_a_paused_schedule_alone(sqlite_url: str) -> None:
    """The other schedule tells how long it had time to."""

    def started(scenario: Callable[[Jobpipe], Any]) -> Any:
        pipe = Jobpipe(sqlite_url)
        for name in ("held", "free"):
            pipe.every(0.1, name=name)(lambda: None)

        async def main() -> Any:
            async with pipe, pipe.running():
                return await scenario(pipe)

        return run(main())

    async def jobs(pipe: Jobpipe, type: str) -> list[Job]:
        return (await pipe.page(type=type)).jobs

    async def pause(pipe: Jobpipe) -> int:
        await seen(pipe, partial(jobs, pipe, "held"), bool)
        assert (await pipe.schedules.pause("held")).paused
        return len(await jobs(pipe, "held"))

    async def look(pipe: Jobpipe) -> int:
        before = len(await jobs(pipe, "free"))
        await seen(pipe, partial(jobs, pipe, "free"), lambda found: len(found) >= before + 4)
        assert (await pipe.schedules.get("held")).paused
        return len(await jobs(pipe, "held"))

    async def resume(pipe: Jobpipe) -> None:
        before = len(await jobs(pipe, "held"))
        await pipe.schedules.resume("held")
        await seen(pipe, partial(jobs, pipe, "held"), lambda found: len(found) > before)

    assert started(pause) == started(look)
    started(resume)


def test_a_program_runs_its_schedules(url: str) -> None:
    pipe = Jobpipe(url)
    times: list[float] = []
    enough = asyncio.Event()

    @pipe.every(0.1)
    async def beat() -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) == 4:
            enough.set()

    async def scenario() -> list[Job]:
        async with pipe, pipe.running():
            await enough.wait()
            info = await pipe.schedules.get("beat")
            assert info.last_job is not None
            await finished(pipe, info.last_job)
            return (await pipe.page(type="beat")).jobs

    jobs = run(scenario())
    assert len(jobs) >= 4
    assert len({job.id for job in jobs}) == len(jobs)
    assert all(job.id.startswith("beat@") for job in jobs)
    assert times[3] - times[0] >= 0.25, "they are a tenth of a second apart, but for how late each one is"


def test_a_schedule_that_is_put_in_while_the_program_runs_is_noticed(url: str) -> None:
    pipe = Jobpipe(url)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.schedules.put("late", ScheduleRequest(type="echo", payload=3, every=0.1))

            async def last() -> str | None:
                return (await pipe.schedules.get("late")).last_job

            id = await seen(pipe, last, lambda found: found is not None)
            assert id is not None
            assert (await finished(pipe, id)).result == 3
            await pipe.schedules.drop("late")

    run(scenario())


def test_processes_without_workers_tick_too(sqlite_url: str) -> None:
    pipe = Jobpipe(sqlite_url)
    pipe.every(0.1, name="beat")(lambda: None)

    async def scenario() -> Job:
        async with pipe, pipe.running(workers=0):

            async def jobs() -> list[Job]:
                return (await pipe.page()).jobs

            return (await seen(pipe, jobs, bool))[0]

    assert run(scenario()).type == "beat"
