"""The event loop: other loops, other threads, signals, wake-ups, and a loop that closes."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from time import monotonic

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    BadFieldsError,
    Cancelled,
    CapacityExceededError,
    Context,
    Envelope,
    QueueNotRunningError,
    QueueState,
)
from rate_envelope_queue.clock import Alarm, SystemClock
from rate_envelope_queue.testing import ManualClock

from ..support.loops import Failures, forever, noop, run
from ..support.waiting import LIMIT


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
