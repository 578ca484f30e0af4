"""What is called: coroutines, plain functions in threads, submitted ones with their futures, and what they raise."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    BadFieldsError,
    Context,
    DeadlineExceeded,
    Envelope,
    StopType,
)
from rate_envelope_queue.testing import AsyncManualClock

from ..support.loops import Failures, noop, run
from ..support.waiting import LIMIT


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


def test_an_envelope_that_has_run_can_be_collected(collect: Callable[[], None]) -> None:
    async def main() -> None:
        class Payload: ...

        payload = Payload()
        reference = weakref.ref(payload)
        async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
            await queue.send(Envelope(noop, payload=payload))
            del payload
            assert await queue.join()
            await asyncio.sleep(0)
            collect()
            assert reference() is None

    run(main())


def test_an_envelope_whose_type_was_stopped_while_it_ran_is_release_removed(
    collect: Callable[[], None],
) -> None:
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
            collect()
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
