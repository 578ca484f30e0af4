"""Contexts and the clocks that tests control."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    BadFieldsError,
    Cancelled,
    Context,
    Envelope,
    HookBudget,
    RateEnvelopeQueue,
)
from rate_envelope_queue.testing import AsyncManualClock, ManualClock

from .support.waiting import LIMIT


def test_a_root_context_is_done_when_it_is_cancelled() -> None:
    context = Context()
    assert (context.done, context.remaining(), context.error) == (False, float("inf"), None)
    context.raise_if_done()
    context.cancel("enough")
    context.cancel("again")
    assert (context.done, context.remaining(), str(context.error)) == (True, 0, "enough")
    with pytest.raises(Cancelled, match="enough"):
        context.raise_if_done()
    assert context.wait(60) is True


def test_cancelling_wakes_every_thread_that_waits() -> None:
    context, answers = Context(), []
    waiting = [threading.Thread(target=lambda: answers.append(context.wait(60))) for _ in range(4)]
    for thread in waiting:
        thread.start()
    context.cancel()
    for thread in waiting:
        thread.join(LIMIT)
    assert answers == [True] * 4


def test_wait_ends_by_itself() -> None:
    assert Context().wait(0) is False
    assert Context().wait(0.001) is False
    with pytest.raises(BadFieldsError, match="seconds"):
        Context().wait(-1)


@pytest.mark.parametrize(
    ("by", "seconds"),
    [
        (5, 5),
        (0.5, 0.5),
        (timedelta(minutes=2), 120),
        ("90 s", 90),
        ("1.5 s", 1.5),
        ("5 min", 300),
        ("2 hours", 7200),
        ("1 hour", 3600),
        ("3 days", 259200),
        ("1day", 86400),
    ],
)
def test_a_manual_clock_takes_durations_and_texts(by: Any, seconds: float) -> None:
    clock = ManualClock()
    clock.advance(by)
    assert clock.now() == seconds


@pytest.mark.parametrize("by", ["", "5", "five days", "-1 s", "3 fortnights", -1, float("nan"), None])
def test_a_manual_clock_refuses_what_it_does_not_understand(by: Any) -> None:
    clock = ManualClock()
    with pytest.raises(BadFieldsError, match="by"):
        clock.advance(by)
    assert clock.now() == 0


def test_the_wall_clock_moves_along() -> None:
    clock = ManualClock(start=datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2))))
    clock.advance("1 hour")
    assert clock.wall() == datetime(2026, 3, 1, 11, tzinfo=UTC)
    for wrong in (datetime(2026, 3, 1), "2026-03-01"):
        with pytest.raises(BadFieldsError, match="start"):
            ManualClock(start=wrong)  # type: ignore[arg-type]


def test_advance_fires_in_order_and_shows_the_exact_time() -> None:
    clock, ran = ManualClock(), []
    with (
        RateEnvelopeQueue("a", workers=3, clock=clock) as a,
        RateEnvelopeQueue("b", workers=1, clock=clock) as b,
    ):
        a.send(Envelope(lambda ctx, e: ran.append(("a", clock.now())), interval=4))
        b.send(Envelope(lambda ctx, e: ran.append(("b", clock.now()))), delay=6)
        clock.advance(10)
    assert ran == [("a", 0), ("a", 4), ("b", 6), ("a", 8)]


def test_advance_may_be_called_while_an_envelope_waits_for_the_clock() -> None:
    clock, seen = ManualClock(), []

    def sleeper(ctx: Context, envelope: Envelope[Any]) -> None:
        ctx.wait(5)
        seen.append(clock.now())

    with RateEnvelopeQueue("q", workers=1, clock=clock) as queue:
        queue.send(Envelope(sleeper))
        clock.advance(3)
        assert seen == []
        clock.advance(3)
        assert seen == [5]


def test_advance_leaves_alone_what_waits_for_something_else() -> None:
    clock, release, began, ran = ManualClock(), threading.Event(), threading.Event(), []

    def blocked(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        release.wait(LIMIT)

    with RateEnvelopeQueue("q", workers=2, clock=clock) as queue:
        queue.send(Envelope(blocked))
        assert began.wait(LIMIT)
        queue.send(Envelope(lambda ctx, e: ran.append(clock.now())), delay=5)
        clock.advance(10)
        assert ran == [5]
        release.set()


def test_a_coroutine_waits_for_the_clock_with_its_sleep() -> None:
    async def main() -> None:
        clock, seen = AsyncManualClock(), []

        async def sleeper(ctx: Context, envelope: Envelope[Any]) -> None:
            await clock.sleep(5)
            seen.append(clock.now())

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            await queue.send(Envelope(sleeper, interval=10))
            await clock.advance(55)
        assert seen == [5, 20, 35, 50]

    asyncio.run(main())


def test_a_queue_that_is_gone_no_longer_follows_the_clock() -> None:
    clock = ManualClock()
    RateEnvelopeQueue("q", workers=1, clock=clock)
    assert not list(clock._queues)
    clock.advance(5)


def test_what_came_due_on_the_manual_clock_can_be_sent_again_and_cancelled() -> None:
    clock = ManualClock()
    with RateEnvelopeQueue("q", workers=1, clock=clock) as queue:
        envelope = Envelope(lambda ctx, e: None)
        queue.send(envelope, delay=5)
        queue.pause()
        clock.advance(5)
        queue.send(envelope)
        assert queue.stats().ready == 1
        assert queue.cancel(envelope)
        stats = queue.stats()
        assert (stats.ready, stats.running, stats.occupied) == (0, 0, 0)


def test_a_sleep_of_nothing_ends_at_once() -> None:
    async def main() -> None:
        await asyncio.wait_for(AsyncManualClock().sleep(0), LIMIT)

    asyncio.run(main())


async def _gathered(clock: AsyncManualClock) -> None:
    await asyncio.gather(clock.sleep(1), clock.sleep(2))


async def _one_after_the_other_beside_another(clock: AsyncManualClock) -> None:
    async def two() -> None:
        await clock.sleep(0.5)
        await clock.sleep(0.5)

    await asyncio.gather(two(), clock.sleep(2))


async def _with_a_timeout(clock: AsyncManualClock) -> None:
    await asyncio.wait_for(clock.sleep(2), LIMIT)


async def _in_a_group(clock: AsyncManualClock) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(clock.sleep(1))
        group.create_task(clock.sleep(2))


@pytest.mark.parametrize(
    "waits", [_gathered, _one_after_the_other_beside_another, _with_a_timeout, _in_a_group]
)
def test_the_tasks_of_a_run_may_wait_for_the_clock(waits: Any) -> None:
    async def main() -> None:
        clock, ended = AsyncManualClock(), []

        async def invoke(ctx: Context, envelope: Envelope[Any]) -> None:
            await waits(clock)
            ended.append(clock.now())

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            await queue.send(Envelope(invoke))
            await clock.advance(10)
            assert ended == [2]

    asyncio.run(main())


def test_a_deadline_ends_a_sleep_on_the_clock_in_time() -> None:
    async def main() -> None:
        clock, began, ended = AsyncManualClock(), [], []

        async def sleep(ctx: Context, envelope: Envelope[Any]) -> None:
            began.append(clock.now())
            await clock.sleep(60)

        def note(ctx: Context, envelope: Envelope[Any], error: Any) -> None:
            ended.append((clock.now(), str(error)))

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock, stop_mode="stop") as queue:
            await queue.send(Envelope(sleep, interval=10, deadline=5, failure_hook=note))
            await clock.advance(4)
            assert ended == []
            await clock.advance(31)
        assert began == [0, 15, 30]
        assert ended == [(at, "timed out after 5 s") for at in (5, 20, 35)]

    asyncio.run(main())


def test_what_is_cancelled_while_it_waits_for_the_clock_ends_before_the_clock_moves() -> None:
    async def main() -> None:
        clock, ended = AsyncManualClock(), []

        async def sleep(ctx: Context, envelope: Envelope[Any]) -> None:
            await clock.sleep(60)

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            envelope = Envelope(sleep, failure_hook=lambda ctx, envelope, error: ended.append(clock.now()))
            await queue.send(envelope)
            await clock.advance(1)
            assert queue.cancel(envelope)
            await clock.advance(10)
            assert ended == [1]

    asyncio.run(main())
    clock, ended = ManualClock(), []
    with RateEnvelopeQueue("q", workers=1, clock=clock) as queue:
        envelope = Envelope[None](
            lambda ctx, envelope: ctx.wait(60), failure_hook=lambda ctx, e, error: ended.append(clock.now())
        )
        queue.send(envelope)
        clock.advance(1)
        assert queue.cancel(envelope)
        clock.advance(10)
        assert ended == [1]


@pytest.mark.parametrize("deadline", [0, 5])
@pytest.mark.parametrize("place", ["invoke", "before_hook", "after_hook", "success_hook", "failure_hook"])
def test_a_wait_in_any_part_of_a_run_ends_at_its_time(place: str, deadline: float) -> None:
    clock, ended = ManualClock(), []

    def wait(ctx: Context, envelope: Envelope[Any], error: Any = None) -> None:
        ctx.wait(1)
        ended.append(clock.now())

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError("on purpose")

    parts: dict[str, Any] = {
        "invoke": fail if place == "failure_hook" else lambda ctx, envelope: None,
        place: wait,
    }
    budget = HookBudget(fraction=0.5, floor=2)
    with RateEnvelopeQueue("q", workers=1, clock=clock, hook_budget=budget) as queue:
        queue.send(Envelope(parts.pop("invoke"), deadline=deadline, **parts))
        clock.advance(60)
        assert ended == [1]
