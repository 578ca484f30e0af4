"""The timetable: what is put into it by hand, and what the program declares."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Jobpipe,
    Missed,
    PayloadTooLargeError,
    QueueFullError,
    ScheduleNotFoundError,
    ScheduleRequest,
)
from jobpipe.stores.memory import MemoryStore

from ...support.waiting import run
from .schedule_bench import HOUR, Bench

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
