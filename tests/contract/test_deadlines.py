"""Deadlines of a run and budgets of its hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rate_envelope_queue import Cancelled, Context, DeadlineExceeded, Envelope, HookBudget, StopEnvelope

from ..support.gates import Gate
from ..support.waiting import LIMIT
from .conftest import Driver
from .diary import Diary


def test_a_run_that_returns_late_has_exceeded_its_deadline(driver: Driver) -> None:
    """Code that does not look at its context still gets the outcome; in asyncio a coroutine is cancelled before."""
    diary = Diary()

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        diary.entries.append("invoke")
        driver.clock._instant += 5  # the clock moves while it works

    queue = driver.queue()
    queue.send(driver.envelope(late, deadline=3, **diary.hooks(without="before_hook")))
    assert queue.join(LIMIT)
    assert diary.entries == ["invoke", "after", "failure"]
    assert isinstance(diary.errors[0], DeadlineExceeded)
    assert queue.stats().failed == 1
    assert diary.contexts["after"].done, "the after hook sees that it is too late"


def test_the_failure_hook_gets_a_fresh_context_however_late_the_run_was(driver: Driver) -> None:
    seen: list[tuple[bool, float]] = []

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 50

    def on_failure(ctx: Context, envelope: Envelope[Any], error: Exception) -> None:
        seen.append((ctx.done, ctx.remaining()))

    queue = driver.queue(hook_budget=HookBudget(fraction=0.5, floor=0.8))
    queue.send(driver.envelope(late, deadline=4, failure_hook=on_failure))
    assert queue.join(LIMIT)
    assert seen == [(False, 2.0)]


def test_hook_budgets_are_a_fraction_of_the_deadline_with_a_floor(driver: Driver) -> None:
    seen: dict[str, float] = {}

    def note(name: str) -> Callable[..., None]:
        return lambda ctx, envelope: seen.update({name: ctx.remaining()})

    queue = driver.queue(hook_budget=HookBudget(fraction=0.25, floor=0.5))
    queue.send(driver.envelope(note("invoke"), before_hook=note("long"), deadline=8))
    queue.send(driver.envelope(success_hook=note("short"), deadline=1))
    queue.send(driver.envelope(after_hook=note("within"), deadline=0.2))
    queue.send(driver.envelope(success_hook=note("none")))
    assert queue.join(LIMIT)
    assert seen == {"invoke": 8, "long": 2, "short": 0.5, "within": 0.2, "none": 0.5}


def test_a_real_error_wins_over_the_deadline(driver: Driver) -> None:
    diary = Diary()

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 5
        raise ValueError("real")

    queue = driver.queue()
    queue.send(driver.envelope(late, deadline=3, failure_hook=diary.failure))
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], ValueError)


def test_a_stop_wins_over_the_deadline(driver: Driver) -> None:
    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 5
        raise StopEnvelope

    queue = driver.queue()
    queue.send(driver.envelope(late, deadline=3))
    assert queue.join(LIMIT)
    assert (queue.stats().failed, queue.occupied) == (0, 0)


def test_a_before_hook_that_uses_up_the_deadline_leaves_no_time_to_invoke(driver: Driver) -> None:
    diary = Diary()

    def late(ctx: Context, envelope: Envelope[Any]) -> None:
        driver.clock._instant += 5

    queue = driver.queue()
    hooks = diary.hooks(without="before_hook")
    queue.send(driver.envelope(diary.invoke, before_hook=late, deadline=3, **hooks))
    assert queue.join(LIMIT)
    assert diary.entries == ["failure"]
    assert isinstance(diary.errors[0], DeadlineExceeded)


def test_code_can_co_operate_with_its_deadline(driver: Driver) -> None:
    seen: list[Any] = []

    looked = threading.Event()

    def patient(ctx: Context, envelope: Envelope[Any]) -> None:
        seen.append(ctx.remaining())
        seen.append(ctx.wait(1))
        seen.append(ctx.remaining())
        seen.append(ctx.wait(100))
        seen.append((ctx.done, ctx.remaining()))
        looked.set()
        ctx.raise_if_done()

    queue = driver.queue()
    queue.send(driver.envelope(patient, deadline=3))
    driver.advance(10)
    assert queue.join(LIMIT)
    assert queue.stats().failed == 1
    assert looked.wait(LIMIT)
    assert seen == [3, False, 2, True, (True, 0)]


def test_a_cancelled_run_that_returns_has_failed_with_cancelled(driver: Driver, gate: Gate) -> None:
    diary = Diary()
    queue = driver.queue()
    envelope = driver.envelope(gate.pass_through, failure_hook=diary.failure)
    queue.send(envelope)
    gate.wait_reached()
    queue.cancel(envelope)
    gate.open()
    assert queue.join(LIMIT)
    assert isinstance(diary.errors[0], Cancelled)


def test_a_context_has_no_deadline_unless_the_envelope_has(driver: Driver) -> None:
    seen: list[float] = []
    queue = driver.queue()
    queue.send(driver.envelope(lambda ctx, envelope: seen.append(ctx.remaining())))
    assert queue.join(LIMIT)
    assert seen == [float("inf")]
