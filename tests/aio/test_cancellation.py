"""Deadlines, `cancel` and a cancelled task break a coroutine off for real, and nothing is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Cancelled,
    Context,
    DeadlineExceeded,
    Envelope,
    HookBudget,
    QueueState,
    before_after_stamp,
    stamp,
)
from rate_envelope_queue.testing import AsyncManualClock

from ..support.loops import Failures, forever, noop, run
from ..support.waiting import LIMIT


def test_a_deadline_cancels_the_coroutine_for_real() -> None:
    async def main() -> None:
        clock, failures, cleaned = AsyncManualClock(), Failures(), []

        async def slow(ctx: Context, envelope: Envelope[Any]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append(clock.now())

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            await queue.send(Envelope(slow, deadline=5, failure_hook=failures))
            await clock.advance(10)
            assert cleaned == [5]
            assert isinstance(failures[0], DeadlineExceeded)
            assert queue.stats().failed == 1

    run(main())


def test_a_deadline_in_real_time_cancels_too() -> None:
    async def main() -> None:
        failures = Failures()
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            await queue.send(Envelope(forever, deadline=0.01, failure_hook=failures))
            assert await queue.join(LIMIT)
        assert isinstance(failures[0], DeadlineExceeded)

    run(main())


@pytest.mark.parametrize("hook", ["before_hook", "after_hook", "success_hook", "failure_hook"])
def test_a_hook_that_outruns_its_budget_is_cancelled(hook: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        clock, failures = AsyncManualClock(), Failures()

        async def stuck(ctx: Context, envelope: Envelope[Any], *error: BaseException) -> None:
            await asyncio.Event().wait()

        async def fail(ctx: Context, envelope: Envelope[Any]) -> None:
            raise ValueError

        invoke = fail if hook == "failure_hook" else noop
        options: dict[str, Any] = {"failure_hook": failures, hook: stuck}
        budget = HookBudget(0, 2)
        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock, hook_budget=budget) as queue:
            await queue.send(Envelope(invoke, deadline=100, **options))
            await clock.advance(3)
            stats = queue.stats()
            assert stats.occupied == 0
            if hook == "before_hook":
                assert isinstance(failures[0], DeadlineExceeded)
                assert stats.failed == 1
            else:
                assert "hook raised" in caplog.text
                assert "DeadlineExceeded" in caplog.text
                assert stats.failed == (hook == "failure_hook")

    run(main())


def test_code_that_swallows_the_cancellation_is_late_all_the_same() -> None:
    async def main() -> None:
        clock, failures = AsyncManualClock(), Failures()

        async def stubborn(ctx: Context, envelope: Envelope[Any]) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            await queue.send(Envelope(stubborn, deadline=5, failure_hook=failures))
            await clock.advance(5)
            assert isinstance(failures[0], DeadlineExceeded)
            done = queue.submit(asyncio.sleep, 0, "the worker goes on")
            assert await done == "the worker goes on"

    run(main())


def test_an_error_raised_while_being_cancelled_wins() -> None:
    async def main() -> None:
        clock, failures = AsyncManualClock(), Failures()

        async def failing(ctx: Context, envelope: Envelope[Any]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise ValueError("while cleaning up")

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            await queue.send(Envelope(failing, deadline=5, failure_hook=failures))
            await clock.advance(5)
            assert isinstance(failures[0], ValueError)
            await queue.send(Envelope(noop))
            assert await queue.join()

    run(main())


def test_cancel_breaks_a_running_coroutine_off() -> None:
    async def main() -> None:
        failures = Failures()
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            for options in ({}, {"deadline": 60}):
                envelope = Envelope(forever, failure_hook=failures, **options)  # type: ignore[arg-type]
                await queue.send(envelope)
                while queue.stats().running == 0:
                    await asyncio.sleep(0)
                assert queue.cancel(envelope)
                assert await queue.join()
                assert isinstance(failures.pop(), Cancelled)
            assert queue.occupied == 0

    run(main())


def test_an_envelope_that_cancels_itself_without_awaiting_does_no_harm_to_the_next() -> None:
    async def main() -> None:
        failures = Failures()
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:

            async def suicidal(ctx: Context, envelope: Envelope[Any]) -> None:
                queue.cancel(envelope)

            async def awaiting(ctx: Context, envelope: Envelope[Any]) -> None:
                for _ in range(5):
                    await asyncio.sleep(0)

            await queue.send(
                Envelope(suicidal, failure_hook=failures), Envelope(awaiting, failure_hook=failures)
            )
            assert await queue.join()
            assert [type(error) for error in failures] == [Cancelled]
            assert queue.stats().done == 1

    run(main())


def test_a_stray_cancelled_error_is_an_error_and_no_panic() -> None:
    async def main() -> None:
        failures = Failures()

        async def awaits_a_cancelled_future(ctx: Context, envelope: Envelope[Any]) -> None:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            await queue.send(Envelope(awaits_a_cancelled_future, failure_hook=failures))
            assert await queue.join()
            assert isinstance(failures[0], Cancelled)
            assert (queue.stats().panicked, queue.state) == (0, QueueState.RUNNING)

    run(main())


def test_terminate_breaks_off_what_runs_and_does_not_wait() -> None:
    async def main() -> None:
        failures = Failures()
        queue = AsyncRateEnvelopeQueue("q", workers=2)
        await queue.start()
        waiting = Envelope(noop)
        await queue.send(
            Envelope(forever, failure_hook=failures), Envelope(forever, failure_hook=failures), waiting
        )
        while queue.stats().running < 2:
            await asyncio.sleep(0)
        assert await queue.terminate() == [waiting]
        assert await queue.join()
        assert [type(error) for error in failures] == [Cancelled, Cancelled]
        assert await queue.stop()

    run(main())


async def _cancel_after(turns: int, call: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
    """Cancel a call after so many turns of the loop; had it ended before?"""
    task = asyncio.ensure_future(call())
    for _ in range(turns):
        await asyncio.sleep(0)
    was_done = task.done()
    task.cancel()
    await asyncio.wait((task,))
    return was_done


@pytest.mark.parametrize("what", ["blocking send", "stop", "join", "start", "send"])
def test_cancellation_at_every_await_of_a_call_loses_nothing(what: str) -> None:
    async def main() -> None:
        for turns in range(12):
            gate = asyncio.Event()

            async def gated(ctx: Context, envelope: Envelope[Any], gate: asyncio.Event = gate) -> None:
                await gate.wait()

            queue = AsyncRateEnvelopeQueue("q", workers=1, capacity=2)
            if what != "start":
                await queue.start()
            await queue.send(Envelope(gated), Envelope(gated))
            extra = Envelope(gated)
            calls: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
                "blocking send": lambda queue=queue, extra=extra: queue.send(extra, block=True),  # type: ignore[misc]
                "send": lambda queue=queue: queue.send(),  # type: ignore[misc]
                "stop": queue.stop,
                "join": queue.join,
                "start": queue.start,
            }
            await _cancel_after(turns, calls[what])
            assert not queue._waiters.senders
            assert not queue._waiters.joiners
            assert not queue._waiters.stoppers
            gate.set()
            await queue.start()
            assert await queue.join()
            stats = queue.stats()
            assert (stats.done, stats.occupied) == (2, 0)
            assert await queue.stop()

    run(main())


def test_cancellation_at_every_await_of_a_run_loses_no_envelope_and_no_place() -> None:
    async def main() -> None:
        for turns in range(25):
            ended: list[int] = []

            async def long(ctx: Context, envelope: Envelope[Any]) -> None:
                for _ in range(5):
                    await asyncio.sleep(0)

            async def hook(ctx: Context, envelope: Envelope[Any], *_: Any) -> None:
                await asyncio.sleep(0)

            @stamp
            def counting(ctx: Context, envelope: Envelope[Any], ended: list[int] = ended) -> Any:
                try:
                    yield
                finally:
                    ended.append(1)

            around = before_after_stamp(hook, hook, budget=5)
            async with AsyncRateEnvelopeQueue("q", workers=1, stamps=[counting, around]) as queue:
                hooks: dict[str, Any] = dict.fromkeys(
                    ("before_hook", "after_hook", "success_hook", "failure_hook"), hook
                )
                envelope = Envelope(long, deadline=50, **hooks)
                await queue.send(envelope)
                for _ in range(turns):
                    await asyncio.sleep(0)
                queue.cancel(envelope)
                assert await queue.join()
                await queue.send(Envelope(noop))
                assert await queue.join()
                stats = queue.stats()
                assert stats.occupied == 0
                assert stats.done >= 1
                assert stats.done + stats.failed + stats.dropped >= 2

    run(main())


def test_a_cancellation_that_comes_as_the_run_ends_leaves_time_to_report_it() -> None:
    async def main() -> None:
        began, reported = asyncio.Event(), []
        go = asyncio.get_running_loop().create_future()

        async def work(ctx: Context, envelope: Envelope[Any]) -> None:
            began.set()
            await go

        async def report(ctx: Context, envelope: Envelope[Any], error: BaseException) -> None:
            await asyncio.sleep(0.001)
            reported.append(error)

        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            envelope = Envelope(work, failure_hook=report)
            await queue.send(envelope)
            await began.wait()
            go.set_result(None)
            assert queue.cancel(envelope)
            assert await queue.join()
        assert [str(error) for error in reported] == ["the envelope was cancelled"]

    run(main())


def test_the_deadline_holds_though_a_hook_within_it_was_broken_off() -> None:
    async def main() -> None:
        clock, failures = AsyncManualClock(), Failures()

        def forgiving(inner: Any) -> Any:
            async def call(ctx: Context, envelope: Envelope[Any]) -> None:
                try:
                    await inner(ctx, envelope)
                except DeadlineExceeded:
                    await asyncio.Event().wait()

            return call

        stamps = [forgiving, before_after_stamp(before=forever, budget=1)]
        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            await queue.send(Envelope(noop, deadline=5, stamps=stamps, failure_hook=failures))
            await clock.advance(6)
            assert isinstance(failures[0], DeadlineExceeded)
            assert queue.occupied == 0

    run(main())
