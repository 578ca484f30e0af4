"""Hostile calls, the same on two stores: the same answers, never a 500, and nothing changed by what was refused."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobpipe.job import Move

from .hostile import NAMES, Call, calls
from .players import HARNESSES, Player

others = pytest.mark.parametrize("other", [name for name in HARNESSES if name != "memory"])
# Why no shrinking: every step is a commit on disk, and shrinking takes minutes; turn it on to study a failure.
quietly = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Works:
    """A step that runs the next job."""

    def __init__(self, move: Move) -> None:
        self.move = move

    def __repr__(self) -> str:
        return f"Works({self.move})"


class Passes:
    """A step in which time goes by."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Passes({self.seconds})"


steps = st.lists(
    st.one_of(
        *[calls] * 6,
        st.sampled_from(
            [Works(Move.SUCCEED), Works(Move.FAIL), Works(Move.RETRY), Passes(1), Passes(100_000)]
        ),
    ),
    min_size=10,
    max_size=30,
)


async def play(left: Player, right: Player, steps: list[Any]) -> None:
    for step in steps:
        if isinstance(step, Works):
            assert left.work(step.move) == right.work(step.move)
        elif isinstance(step, Passes):
            for each in (left, right):
                each.harness.elapse(step.seconds)
        else:
            await compare(left, right, step)
    for path in (*(f"/jobs/{name}" for name in NAMES), "/queues", "/stats", "/schedules"):
        await compare(left, right, Call("GET", path))
    await compare(left, right, Call("GET", "/jobs", b"limit=500"))


async def compare(left: Player, right: Player, call: Call) -> None:
    answers = []
    for each in (left, right):
        before = each.dump()
        answers.append(await each.ask(call))
        if answers[-1].status >= 400:
            assert each.dump() == before, f"{call} was refused, and changed something"
    assert answers[0] == answers[1], call
    assert answers[0].status != 500, call


@others
@quietly
@given(steps=steps)
def test_hostile_calls_get_the_same_answers_from_both_stores(other: str, steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        left, right = (Player(HARNESSES[name](Path(folder)), queue_size=8) for name in ("memory", other))
        try:
            asyncio.run(play(left, right, steps))
        finally:
            left.close()
            right.close()
