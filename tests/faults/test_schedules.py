"""Schedules with several processes, some of which die: one job a tick, and the ticks go on."""

from __future__ import annotations

import signal
from typing import NamedTuple

import pytest

from jobpipe.schedule import tick_id

from .programs import LIMIT, Start, eventually, script

EVERY = 0.5
BEATS = """
from app import note, pipe

@pipe.every(0.5)
async def beat():
    note()
"""
DOOMED = """
import asyncio, os, signal
from beats import pipe
from jobpipe.stores.sqlite import store

plain = store.sql

def sql(name):
    if name == "advance":  # the job is inserted, the schedule has not gone on
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(name)

store.sql = sql

async def main():
    async with pipe, pipe.running():
        await asyncio.sleep(1000)

asyncio.run(main())
"""


class Tick(NamedTuple):
    """A job, and the how-manieth tick of the schedule it belongs to."""

    number: int
    id: str


@pytest.fixture
def beats(start: Start) -> Start:
    (start.folder / "beats.py").write_text(BEATS)
    return start


def ticks(start: Start) -> list[Tick]:
    """The jobs in the order in which they were put in; each has to be that of a tick."""
    ((anchor_at,),) = start.sql("SELECT anchor_at FROM schedules WHERE name = 'beat'")
    numbers = {tick_id("beat", anchor_at + number * EVERY): number for number in range(1, 500)}
    rows = start.sql("SELECT id FROM jobs ORDER BY seq")
    return [Tick(numbers[id], id) for (id,) in rows]


def assert_one_job_a_tick(found: list[Tick]) -> None:
    numbers = [tick.number for tick in found]
    assert numbers == sorted(set(numbers))
    # Why some may be left out: a process that is held up for long puts in one job for all ticks that passed.
    assert len(numbers) >= (numbers[-1] - numbers[0]) / 2


def test_two_services_of_which_one_is_killed_put_in_one_job_a_tick(beats: Start) -> None:
    """Fault 23."""
    first = beats.serve("beats:pipe")
    first.get("/schedules/beat")
    second = beats.serve("beats:pipe")
    second.get("/schedules/beat")
    eventually(lambda: len(ticks(beats)) >= 5)
    first.kill()
    before = len(ticks(beats))
    eventually(lambda: len(ticks(beats)) >= before + 5, second.log.read_text)
    (info,) = second.get("/schedules")["schedules"]
    assert info["last_job"] in [tick.id for tick in ticks(beats)]
    found = ticks(beats)
    assert_one_job_a_tick(found)
    assert second.call("DELETE", "/schedules/beat").status_code == 204
    rows = second.all_done(tick.id for tick in found)
    assert {row["id"] for row in rows} <= {id for id, _, _ in beats.runs()}


def test_a_tick_in_which_a_process_died_is_put_in_once_by_another(beats: Start) -> None:
    """Faults 10 and 23: killed between the job and the step to the next tick; four others come after it."""
    doomed = beats.command(script(DOOMED))
    assert doomed.process.wait(LIMIT) == -signal.SIGKILL
    assert beats.sql("SELECT count(*) FROM jobs") == [(0,)]
    assert beats.sql("SELECT round((next_at - anchor_at) * 10), last_at, last_job FROM schedules") == [
        (5, None, None)
    ]
    workers = [beats.worker("beats:pipe") for _ in range(4)]
    eventually(lambda: len(ticks(beats)) >= 6)
    found = ticks(beats)
    assert found[0].number == 1
    assert_one_job_a_tick(found[1:])
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.code() for worker in workers] == [0] * 4
    assert all("Traceback" not in worker.output for worker in workers)
