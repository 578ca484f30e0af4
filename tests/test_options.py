"""The options of a queue: what is wrong is refused by name, on both queues alike."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import rate_envelope_queue
from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    BadFieldsError,
    ExponentialBackoff,
    HookBudget,
    QueueState,
    RateEnvelopeQueue,
    SystemClock,
)
from rate_envelope_queue.testing import AsyncManualClock, ManualClock

QUEUES = [RateEnvelopeQueue, AsyncRateEnvelopeQueue]
WRONG: list[tuple[str, Any]] = [
    ("workers", 0),
    ("workers", -1),
    ("workers", 1.5),
    ("workers", "4"),
    ("workers", True),
    ("stop_mode", "halt"),
    ("stop_mode", None),
    ("waiting", 1),
    ("waiting", None),
    ("capacity", -1),
    ("capacity", 1.5),
    ("capacity", None),
    ("stamps", 5),
    ("stamps", [5]),
    ("limiter", 5),
    ("limiter", ExponentialBackoff),
    ("on_periodic_error", "explode"),
    ("hook_budget", 5),
    ("parent", "me"),
    ("metrics", "yes"),
    ("clock", 5),
    ("clock", ManualClock),
    ("replace_stuck", 1),
]


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize(("option", "value"), WRONG)
def test_a_wrong_option_is_refused_by_name_with_its_value(queue: Any, option: str, value: Any) -> None:
    with pytest.raises(ValueError, match=option) as caught:
        queue("q", **{"workers": 1, option: value})
    assert repr(value[0] if isinstance(value, list) else value) in str(caught.value)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("name", ["", 5, None])
def test_a_wrong_name_is_refused(queue: Any, name: Any) -> None:
    with pytest.raises(ValueError, match="name"):
        queue(name, workers=1)


@pytest.mark.parametrize("queue", QUEUES)
def test_an_unknown_option_is_refused(queue: Any) -> None:
    with pytest.raises(TypeError, match="wokers"):
        queue("q", wokers=1)
    with pytest.raises(TypeError):
        queue("q")
    with pytest.raises(TypeError):
        queue("q", 1)


@pytest.mark.parametrize("queue", QUEUES)
def test_a_new_queue_shows_what_it_is(queue: Any) -> None:
    made = queue("mails", workers=2, capacity=10, clock=SystemClock())
    assert (made.name, made.state, made.capacity, made.occupied) == ("mails", QueueState.INIT, 10, 0)
    assert made.blacklist == frozenset()
    assert "mails" in repr(made)
    for name in ("name", "state", "capacity", "occupied", "blacklist"):
        with pytest.raises(AttributeError):
            setattr(made, name, None)


def test_both_queues_offer_the_same_calls() -> None:
    for name in [
        "start",
        "send",
        "stop",
        "terminate",
        "state",
        "capacity",
        "occupied",
        "stats",
        "join",
        "cancel",
        "pause",
        "resume",
        "blacklist",
        "allow",
        "submit",
        "name",
    ]:
        assert hasattr(RateEnvelopeQueue, name)
        assert hasattr(AsyncRateEnvelopeQueue, name)
    for name in ("send", "stop", "join", "start", "terminate"):
        ours, theirs = (inspect.signature(getattr(queue, name)) for queue in QUEUES)
        assert list(ours.parameters.values()) == list(theirs.parameters.values())
        assert inspect.iscoroutinefunction(getattr(AsyncRateEnvelopeQueue, name))


@pytest.mark.parametrize(
    "wrong", [{"fraction": -1}, {"fraction": 2}, {"floor": -1}, {"floor": float("nan")}, {"fraction": "half"}]
)
def test_a_wrong_hook_budget_is_refused(wrong: Any) -> None:
    with pytest.raises(BadFieldsError, match=next(iter(wrong))):
        HookBudget(**wrong)


def test_stats_are_a_frozen_snapshot() -> None:
    queue = RateEnvelopeQueue("q", workers=1)
    stats = queue.stats()
    with pytest.raises(AttributeError):
        stats.ready = 5  # type: ignore[misc]
    assert stats == queue.stats()


def test_the_manual_clock_of_asyncio_is_refused_by_the_thread_queue() -> None:
    with pytest.raises(BadFieldsError, match="clock"):
        RateEnvelopeQueue("q", workers=1, clock=AsyncManualClock())


def test_the_package_knows_its_version() -> None:
    assert str(rate_envelope_queue.__version__).count(".") == 2
