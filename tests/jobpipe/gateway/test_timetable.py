"""The timetable: one job a tick, whoever ticks, and a program that runs its schedules."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Job,
    Jobpipe,
    JobStatus,
    Missed,
    ScheduleRequest,
    StoreAwayError,
)
from jobpipe.model.schedule import LATE, tick_id
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing.harness import together

from ...support.jobs import finished, seen
from ...support.waiting import run
from .schedule_bench import DAY, HOUR, Bench, complaints

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
    beats = itertools.count(1)
    enough = asyncio.Event()

    @pipe.every(0.1)
    async def beat() -> None:
        if next(beats) == 4:
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
    ticks = sorted(datetime.fromisoformat(job.id.removeprefix("beat@")) for job in jobs)
    apart = [(after - before).total_seconds() for before, after in itertools.pairwise(ticks)]
    tenths = [max(round(each, 1), 0.1) for each in apart]
    assert apart == pytest.approx(tenths, abs=1e-4), "whole tenths of a second, however late each one is"


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
