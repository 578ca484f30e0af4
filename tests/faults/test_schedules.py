"""Schedules with several processes, some of which die: one job a tick, and the ticks go on."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from jobpipe.model.schedule import tick_id

from ..support.waiting import eventually
from .programs import Start

EVERY = 0.5
BEATS = """
from app import note, pipe

@pipe.every(0.5)
async def beat():
    note()
"""


class Tick(NamedTuple):
    """A job, and the how-manieth tick of the schedule it belongs to."""

    number: int
    id: str


@pytest.fixture
def beats(durable: Start) -> Start:
    (durable.folder / "beats.py").write_text(BEATS)
    return durable


def ticks(start: Start) -> list[Tick]:
    """The jobs in the order in which they were put in; each has to be that of a tick."""
    with start.store() as store:
        (entry,) = store.schedules().entries
    numbers = {tick_id("beat", entry.anchor_at + number * EVERY): number for number in range(1, 500)}
    return [Tick(numbers[id], id) for id in start.jobs()]


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
