"""What only the asyncio queue does: real cancellation, threads for sync code, and cancellation of everything at any time."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import weakref
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    BadFieldsError,
    Cancelled,
    CapacityExceededError,
    Context,
    DeadlineExceeded,
    Envelope,
    HookBudget,
    QueueNotRunningError,
    QueueState,
    StopType,
    before_after_stamp,
    stamp,
)
from rate_envelope_queue.clock import Alarm, SystemClock
from rate_envelope_queue.testing import AsyncManualClock, ManualClock

from .support.waiting import LIMIT


def run(main: Coroutine[Any, Any, None]) -> None:
    async def within_limit() -> None:
        async with asyncio.timeout(LIMIT):
            await main
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, f"tasks are left behind: {left}"

    asyncio.run(within_limit())


class Failures(list[BaseException]):
    """A failure hook that keeps what it was told."""

    def __call__(self, ctx: Context, envelope: Envelope[Any], error: BaseException) -> None:
        self.append(error)


async def forever(ctx: Context, envelope: Envelope[Any]) -> None:
    await asyncio.Event().wait()


async def noop(ctx: Context, envelope: Envelope[Any]) -> None: ...


class _StandingClock(SystemClock):
    """A clock that the test moves by hand, and that notes for when an alarm is ordered."""

    def __init__(self) -> None:
        self.instant = 0.0
        self.ordered: list[float] = []

    def now(self) -> float:
        return self.instant

    def call_at(self, loop: asyncio.AbstractEventLoop, when: float, callback: Callable[[], None]) -> Alarm:
        self.ordered.append(when)
        return loop.call_later(LIMIT, callback)


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


def test_a_sync_invoke_runs_in_a_thread_and_the_loop_goes_on() -> None:
    async def main() -> None:
        release, threads = threading.Event(), []

        def blocking(ctx: Context, envelope: Envelope[Any]) -> None:
            threads.append(threading.current_thread())
            assert release.wait(LIMIT)

        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            await queue.send(Envelope(blocking))
            while not threads:
                await asyncio.sleep(0)
            assert threads[0] is not threading.main_thread()
            release.set()
            assert await queue.join()

    run(main())


def test_a_sync_invoke_stays_running_until_it_returns_and_is_then_late() -> None:
    async def main() -> None:
        clock, failures, after = AsyncManualClock(), Failures(), []
        release, began = threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def blocking(ctx: Context, envelope: Envelope[Any]) -> None:
            loop.call_soon_threadsafe(began.set)
            assert release.wait(LIMIT)

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock) as queue:
            hook = lambda ctx, envelope: after.append(ctx.done)  # noqa: E731
            await queue.send(Envelope(blocking, deadline=5, after_hook=hook, failure_hook=failures))
            await began.wait()
            await clock.advance(6)
            assert queue.stats().running == 1
            release.set()
            assert await queue.join()
            assert isinstance(failures[0], DeadlineExceeded)
            assert after == [True]

    run(main())


def test_a_sync_invoke_that_overruns_is_replaced_if_asked() -> None:
    async def main() -> None:
        clock, release, began = AsyncManualClock(), threading.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()

        def blocking(ctx: Context, envelope: Envelope[Any]) -> None:
            loop.call_soon_threadsafe(began.set)
            assert release.wait(LIMIT)

        async with AsyncRateEnvelopeQueue("q", workers=1, clock=clock, replace_stuck=True) as queue:
            await queue.send(Envelope(blocking, deadline=5))
            await began.wait()
            await clock.advance(6)
            assert queue.stats().stuck == 1
            assert await queue.submit(asyncio.sleep, 0, "free") == "free"
            release.set()
            assert await queue.join()
            assert queue.stats().stuck == 0
            assert len(queue._pool.workers) == 1

    run(main())


@pytest.mark.parametrize("error", [StopIteration(), SystemExit(), KeyboardInterrupt(), GeneratorExit()])
@pytest.mark.parametrize("is_async", [True, False])
def test_a_handler_may_raise_anything(error: BaseException, is_async: bool) -> None:
    async def main() -> None:
        def sync(ctx: Context, envelope: Envelope[Any]) -> None:
            raise error

        async def coroutine(ctx: Context, envelope: Envelope[Any]) -> None:
            raise error

        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            await queue.send(Envelope(coroutine if is_async else sync))
            assert await queue.join()
            assert (queue.stats().failed, queue.occupied) == (1, 0)
            await queue.send(Envelope(noop))
            assert await queue.join()

    run(main())


def test_submit_takes_coroutine_functions_and_plain_ones() -> None:
    async def main() -> None:
        async def double(x: int) -> int:
            return 2 * x

        async with AsyncRateEnvelopeQueue("q", workers=2) as queue:
            assert await queue.submit(double, 4) == 8
            assert await queue.submit(pow, 2, exp=3) == 8
            with pytest.raises(ZeroDivisionError):
                await queue.submit(lambda: 1 // 0)
            with pytest.raises(BadFieldsError, match="fn must be callable"):
                queue.submit(None)  # type: ignore[call-overload]

    run(main())


def test_cancelling_the_future_of_a_submit_takes_it_out_or_breaks_it_off() -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def endless() -> None:
            began.set()
            await asyncio.Event().wait()

        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            running, waiting = queue.submit(endless), queue.submit(endless)
            await began.wait()
            waiting.cancel()
            running.cancel()
            assert await queue.join()
            assert queue.occupied == 0

    run(main())


def test_futures_of_what_is_dropped_are_cancelled() -> None:
    async def main() -> None:
        queue = AsyncRateEnvelopeQueue("q", workers=1)
        future = queue.submit(asyncio.sleep, 0)
        assert len(await queue.terminate()) == 1
        assert future.cancelled()

    run(main())


def test_a_send_on_another_loop_or_on_none_is_refused_while_a_worker_sleeps() -> None:
    """It would be woken only by the insurance, after seconds."""

    async def main() -> None:
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            while not queue._pool.idle:
                await asyncio.sleep(0)
            for call in (
                lambda: asyncio.run(queue.send(Envelope(noop))),
                lambda: queue.send_nowait(Envelope(noop)),
            ):
                with pytest.raises(RuntimeError, match=r"'q' runs on an event loop .* use send_threadsafe"):
                    await asyncio.to_thread(call)
            assert queue.stats().added == 0

    run(main())


def test_send_threadsafe_from_another_thread() -> None:
    async def main() -> None:
        async with AsyncRateEnvelopeQueue("q", workers=1, capacity=1) as queue:
            queue.pause()
            futures = await asyncio.to_thread(
                lambda: [queue.send_threadsafe(Envelope(noop)) for _ in range(2)]
            )
            await asyncio.wrap_future(futures[0])
            with pytest.raises(CapacityExceededError):
                await asyncio.wrap_future(futures[1])
            queue.resume()
            assert await queue.join()
        with pytest.raises(QueueNotRunningError, match="start"):
            queue.send_threadsafe(Envelope(noop))

    run(main())


def test_send_nowait_needs_no_loop_before_the_start() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=1)
    queue.send_nowait(Envelope(noop), Envelope(noop))

    async def main() -> None:
        async with queue:
            assert await queue.join()
        assert queue.stats().done == 2

    run(main())


def test_a_queue_may_move_to_another_loop_while_it_is_stopped() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=1)

    async def main() -> None:
        async with queue:
            await queue.send(Envelope(noop))
            assert await queue.join()

    run(main())
    run(main())
    assert queue.stats().done == 2


def test_a_worker_lets_other_tasks_run_though_no_envelope_awaits() -> None:
    async def main() -> None:
        turns = 0
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            queue.send_nowait(*[Envelope(noop) for _ in range(1000)])
            while queue.stats().done < 1000:
                await asyncio.sleep(0)
                turns += 1
        assert turns > 10

    run(main())


def test_a_lost_wake_up_cannot_strand_work() -> None:
    async def main() -> None:
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            while not queue._pool.idle:
                await asyncio.sleep(0)
            queue._pool.is_waking = True  # as if a worker had been woken, and the ring had been lost
            await queue.send(Envelope(noop))
            assert await queue.join(0.01) is False
            assert queue._alarm is not None
            queue._alarm._poll_again()
            assert await queue.join()

    run(main())


def test_a_closing_loop_ends_the_workers_and_keeps_what_waits() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=2)
    failures = Failures()

    async def main() -> None:
        await queue.start()
        await queue.send(
            Envelope(forever, failure_hook=failures), Envelope(forever, failure_hook=failures), Envelope(noop)
        )
        while queue.stats().running < 2:
            await asyncio.sleep(0)

    asyncio.run(main())  # ends without a stop: asyncio cancels what is left
    assert queue.state is QueueState.STOPPED
    assert [type(error) for error in failures] == [Cancelled, Cancelled]
    assert (queue.stats().ready, queue.occupied) == (1, 1)


def test_an_idle_queue_on_a_closing_loop_is_stopped() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=2)

    async def main() -> None:
        await queue.start()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert queue.state is QueueState.STOPPED


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


def test_an_envelope_that_has_run_can_be_collected() -> None:
    async def main() -> None:
        class Payload: ...

        payload = Payload()
        reference = weakref.ref(payload)
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            await queue.send(Envelope(noop, payload=payload))
            del payload
            assert await queue.join()
            await asyncio.sleep(0)
            gc.collect()
            assert reference() is None

    run(main())


def test_the_manual_clock_of_threads_is_refused() -> None:
    with pytest.raises(BadFieldsError, match="clock"):
        AsyncRateEnvelopeQueue("q", workers=1, clock=ManualClock())


def test_inside_the_loop_a_parent_may_be_cancelled_from_another_thread() -> None:
    async def main() -> None:
        parent, failures = Context(), Failures()
        queue = AsyncRateEnvelopeQueue("q", workers=1, parent=parent)
        await queue.start()
        await queue.send(Envelope(forever, failure_hook=failures))
        while queue.stats().running == 0:
            await asyncio.sleep(0)
        await asyncio.to_thread(parent.cancel)
        assert await queue.join()
        assert await queue.stop()
        assert isinstance(failures[0], Cancelled)
        assert queue.state is QueueState.STOPPED

    run(main())


def test_who_waits_for_room_before_the_start_is_told_that_another_thread_cancelled_the_parent() -> None:
    async def main() -> None:
        parent = Context()
        queue = AsyncRateEnvelopeQueue("q", workers=1, capacity=1, parent=parent)
        await queue.send(Envelope(noop))
        threading.Timer(0.02, parent.cancel).start()
        began_at = monotonic()
        with pytest.raises(QueueNotRunningError):
            await queue.send(Envelope(noop), block=True)
        assert monotonic() - began_at < 10, "it was told, and did not find out by itself"

    run(main())


def test_a_parent_may_be_cancelled_from_another_thread_while_somebody_joins() -> None:
    async def main() -> None:
        parent = Context()
        queue = AsyncRateEnvelopeQueue("q", workers=1, parent=parent)
        await queue.send(Envelope(noop))
        joining = asyncio.create_task(queue.join())
        await asyncio.sleep(0)
        await asyncio.to_thread(parent.cancel)
        while queue.state is not QueueState.STOPPED:
            await asyncio.sleep(0)
        assert not joining.done()
        await queue.terminate()
        await joining

    asyncio.run(main(), debug=True)  # else nobody notices that the loop is touched by another thread


def test_a_signal_handler_that_cancels_the_parent_wakes_the_loop() -> None:
    async def main() -> None:
        parent, before_insurance = Context(), 5
        queue = AsyncRateEnvelopeQueue("q", workers=1, parent=parent)
        await queue.start()
        signal.signal(signal.SIGUSR1, lambda *_: parent.cancel())
        threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
        ended = asyncio.gather(*queue._tasks)
        async with asyncio.timeout(before_insurance):
            await ended
        assert queue.state is QueueState.STOPPED

    before = signal.getsignal(signal.SIGUSR1)
    try:
        run(main())
    finally:
        signal.signal(signal.SIGUSR1, before)


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


def test_an_alarm_is_not_put_off_however_often_something_is_about_to_come_due() -> None:
    async def main() -> None:
        clock = _StandingClock()
        queue = AsyncRateEnvelopeQueue("q", workers=1, clock=clock)
        await queue.start()
        await asyncio.sleep(0)
        for _ in range(10):
            await queue.send(Envelope(noop), delay=clock.tick / 2)
            clock.instant += clock.tick / 4
        assert len(clock.ordered) == 1, "the alarm was put off"
        assert await queue.stop()

    run(main())


def test_an_envelope_whose_type_was_stopped_while_it_ran_is_release_removed() -> None:
    class Payload: ...

    async def main() -> None:
        began, go = asyncio.Event(), asyncio.Event()

        async def tick(ctx: Context, envelope: Envelope[Any]) -> None:
            began.set()
            await go.wait()

        async def stop_type(ctx: Context, envelope: Envelope[Any]) -> None:
            raise StopType

        async with AsyncRateEnvelopeQueue("q", workers=2) as queue:
            payload = Payload()
            reference = weakref.ref(payload)
            await queue.send(Envelope(tick, type="t", interval=1, payload=payload))
            del payload
            await began.wait()
            await queue.send(Envelope(stop_type, type="t"))
            while not queue.blacklist:
                await asyncio.sleep(0)
            go.set()
            assert await queue.join()
            await asyncio.sleep(0)
            gc.collect()
            assert reference() is None

    run(main())


def test_stop_type_counts_also_when_the_future_was_cancelled() -> None:
    async def main() -> None:
        began = asyncio.Event()

        async def work() -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise StopType from None

        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            future = queue.submit(work)
            await began.wait()
            future.cancel()
            assert await queue.join()
            assert queue.stats().failed == 0

    run(main())


def test_a_submit_whose_loop_has_closed_does_not_keep_the_queue_from_ending() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=1)

    async def work() -> None: ...

    async def first() -> None:
        queue.submit(work)

    async def second() -> None:
        queue.submit(work)
        assert len(await queue.terminate()) == 2

    asyncio.run(first())
    run(second())


def test_a_worker_of_before_a_stop_that_is_cancelled_does_not_stop_the_next_start() -> None:
    async def main() -> None:
        queue = AsyncRateEnvelopeQueue("q", workers=1, waiting=False)
        await queue.start()
        await asyncio.sleep(0)
        (first,) = queue._tasks
        assert await queue.stop()
        await queue.start()
        first.cancel()
        await asyncio.wait([first])
        assert queue.state is QueueState.RUNNING
        second = asyncio.gather(*queue._tasks)
        assert await queue.stop()
        await second

    run(main())


def test_a_loop_that_closes_while_a_run_is_being_broken_off_ends_the_workers() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=1)

    async def main() -> None:
        await queue.start()
        envelope = Envelope(forever)
        await queue.send(envelope)
        while queue.stats().running == 0:
            await asyncio.sleep(0)
        queue.cancel(envelope)

    asyncio.run(main())
    assert queue.state is QueueState.STOPPED


def test_a_loop_that_closes_while_a_sync_call_is_late_ends_the_workers() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=1)
    release = threading.Event()

    async def main() -> None:
        await queue.start()
        await queue.send(Envelope(lambda ctx, envelope: release.wait(LIMIT), deadline=0.01))
        while not any(worker.is_interrupted for worker in queue._pool.workers):
            await asyncio.sleep(0.001)
        asyncio.get_running_loop().call_later(0.05, release.set)

    asyncio.run(main())
    assert queue.state is QueueState.STOPPED


def test_workers_that_are_cancelled_before_they_began_do_not_stay() -> None:
    queue = AsyncRateEnvelopeQueue("q", workers=2)

    async def main() -> None:
        await queue.start()

    asyncio.run(main())
    assert queue.state is QueueState.STOPPED
    assert not queue._pool.workers


def test_workers_that_are_cancelled_before_they_began_leave_no_timer_behind() -> None:
    async def main() -> None:
        queue = AsyncRateEnvelopeQueue("q", workers=2)
        await queue.start()
        tasks = set(queue._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await asyncio.sleep(0)
        assert queue.state is QueueState.STOPPED
        assert queue._alarm is None

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
