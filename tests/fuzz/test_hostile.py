"""Hostile calls, the same on two stores: the same answers, never a 500, and nothing changed by what was refused."""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jobpipe.errors import JobpipeError
from jobpipe.model.job import Move

from .hostile import NAMES, Call, anything, calls
from .players import HARNESSES, Player

others = pytest.mark.parametrize("other", [name for name in HARNESSES if name != "memory"])
# Why no shrinking: every step is a commit on disk, and shrinking takes minutes; turn it on to study a failure.
quietly = settings(
    max_examples=20,
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


class Text(str):
    """A string that is none of the plain ones."""


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


OBJECTS: tuple[Any, ...] = (
    *(
        b"bytes",
        {1, 2},
        (1, (2,)),
        {1: 2},
        {None: 1},
        {(1, 2): 3},
        object(),
        len,
        int,
        Text("a"),
        {Text("a"): 1},
    ),
    *(
        float("nan"),
        float("-inf"),
        [float("nan")],
        10**400,
        2**64,
        Decimal("1.5"),
        Decimal("NaN"),
        1j,
        date(2030, 1, 1),
    ),
    *(
        datetime(2030, 1, 1),
        datetime(2030, 1, 1, tzinfo=UTC),
        deep(64),
        deep(65),
        deep(5_000),
        endless(),
        "\ud800",
        "\0",
    ),
)
python_values = st.one_of(st.sampled_from(OBJECTS), anything)
options = st.fixed_dictionaries(
    {"id": st.one_of(st.sampled_from(NAMES), python_values)},
    optional=dict.fromkeys(
        ("queue", "max_retries", "priority", "run_at", "delay", "deadline"), python_values
    ),
)


def enqueued(player: Player, type: Any, payload: Any, given: dict[str, Any]) -> Any:
    """What became of it: the job as it can be seen, or the error, which must be one of ours."""
    before = player.dump()
    try:
        receipt = player.pipe.enqueue_sync(type, payload, **given)
    except JobpipeError as error:
        assert player.dump() == before
        return error.__class__, getattr(error, "field", None)
    job = player.store.get(receipt.id)
    assert job is not None
    return receipt.is_new, job.type, job.queue, job.payload, job.max_retries, job.priority, job.deadline


@others
@settings(quietly, max_examples=25)
@given(type=st.one_of(st.just("echo"), python_values), payload=python_values, given_options=options)
def test_hostile_python_values_are_the_same_to_both_stores(
    other: str, type: Any, payload: Any, given_options: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        left, right = (Player(HARNESSES[name](Path(folder))) for name in ("memory", other))
        try:
            found = [enqueued(each, type, payload, given_options) for each in (left, right)]
        finally:
            left.close()
            right.close()
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "field", ["payload", "type", "id", "queue", "run_at", "delay", "deadline", "priority"]
)
@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_every_python_value_is_taken_or_refused_as_bad_input(field: str, value: Any, tmp_path: Path) -> None:
    player = Player(HARNESSES["memory"](tmp_path))
    try:
        given: dict[str, Any] = {"type": "echo", "payload": None, "id": "a", field: value}
        enqueued(player, given.pop("type"), given.pop("payload"), given)
    finally:
        player.close()
