"""The thread queue as an Executor: `submit`, `map`, `shutdown`, and the futures."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import threading
from typing import Any

import pytest

from rate_envelope_queue import (
    BadFieldsError,
    CapacityExceededError,
    Context,
    Envelope,
    QueueState,
    RateEnvelopeQueue,
    RateLimited,
    StopEnvelope,
)
from rate_envelope_queue.testing import ManualClock

from ..support.waiting import LIMIT


def test_submit_gives_a_future_with_the_result(queue: RateEnvelopeQueue) -> None:
    assert isinstance(queue, concurrent.futures.Executor)
    assert queue.submit(pow, 2, exp=5).result(LIMIT) == 32


def test_submit_gives_a_future_with_the_exception_and_logs_no_warning(
    queue: RateEnvelopeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        queue.submit(fail).result(LIMIT)
    assert queue.join(LIMIT)
    assert queue.stats().failed == 1
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_map_and_run_in_executor_work_as_with_any_executor(queue: RateEnvelopeQueue) -> None:
    assert list(queue.map(lambda x, y: x * y, range(10), range(10))) == [x * x for x in range(10)]

    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(queue, pow, 3, 2)

    assert asyncio.run(main()) == 9


def test_a_cancelled_future_is_not_called() -> None:
    queue = RateEnvelopeQueue("q", workers=1)
    called: list[int] = []
    future = queue.submit(called.append, 1)
    assert future.cancel()
    with queue:
        assert queue.join(LIMIT)
    assert not called


def test_submit_refuses_what_it_cannot_call(queue: RateEnvelopeQueue) -> None:
    async def coroutine() -> None: ...

    with pytest.raises(BadFieldsError, match="AsyncRateEnvelopeQueue"):
        queue.submit(coroutine)
    with pytest.raises(BadFieldsError, match="fn must be callable"):
        queue.submit(5)  # type: ignore[arg-type]
    assert queue.stats().added == 0


def test_futures_of_what_is_dropped_are_cancelled() -> None:
    queue = RateEnvelopeQueue("q", workers=1, stop_mode="stop")
    dropped = queue.submit(int)
    queue.start()
    queue.pause()
    waiting = queue.submit(int)
    assert queue.stop(LIMIT, keep_waiting=False)
    assert waiting.cancelled()
    assert dropped.done()
    kept = RateEnvelopeQueue("q", workers=1)
    future = kept.submit(int)
    assert len(kept.terminate()) == 1
    assert future.cancelled()
    with pytest.raises(concurrent.futures.CancelledError):
        future.result(0)


@pytest.mark.parametrize("raised", [ValueError("from the stamp"), StopEnvelope()])
def test_a_stamp_that_refuses_the_call_settles_the_future(raised: Exception) -> None:
    def refusing(inner: Any) -> Any:
        def call(ctx: Context, envelope: Envelope[Any]) -> None:
            raise raised

        return call

    with RateEnvelopeQueue("q", workers=1, stamps=[refusing]) as queue:
        future = queue.submit(int)
        expected = ValueError if isinstance(raised, ValueError) else concurrent.futures.CancelledError
        with pytest.raises(expected):
            future.result(LIMIT)


@pytest.mark.parametrize("stop_mode", ["drain", "stop"])
def test_shutdown_drains_whatever_the_stop_mode_and_terminates(stop_mode: Any) -> None:
    queue = RateEnvelopeQueue("q", workers=1, stop_mode=stop_mode, waiting=False)
    queue.start()
    futures = [queue.submit(pow, i, 2) for i in range(20)]
    queue.shutdown()
    assert [future.result(0) for future in futures] == [i * i for i in range(20)]
    assert queue.state is QueueState.TERMINATED
    with pytest.raises(RuntimeError):
        queue.submit(int)
    queue.shutdown()


def test_shutdown_without_waiting_terminates_when_the_work_is_done() -> None:
    release, queue = threading.Event(), RateEnvelopeQueue("q", workers=1)
    queue.start()
    first, second = queue.submit(release.wait, LIMIT), queue.submit(int)
    queue.shutdown(wait=False)
    release.set()
    assert first.result(LIMIT) is True
    assert second.result(LIMIT) == 0
    assert queue.join(LIMIT)


def test_shutdown_can_cancel_what_has_not_begun() -> None:
    release, began, queue = threading.Event(), threading.Event(), RateEnvelopeQueue("q", workers=1)
    queue.start()

    def work() -> bool:
        began.set()
        return release.wait(LIMIT)

    first, second = queue.submit(work), queue.submit(int)
    assert began.wait(LIMIT)
    queue.shutdown(wait=False, cancel_futures=True)
    release.set()
    queue.shutdown()
    assert first.result(LIMIT) is True
    assert second.cancelled()


def test_shutdown_cancels_what_waits_while_it_waits_for_what_runs() -> None:
    began, cancelled, queue = threading.Event(), threading.Event(), RateEnvelopeQueue("q", workers=1)
    queue.start()

    def work() -> bool:
        began.set()
        return cancelled.wait(LIMIT)

    first, second = queue.submit(work), queue.submit(int)
    second.add_done_callback(lambda _: cancelled.set())
    assert began.wait(LIMIT)
    queue.shutdown(wait=True, cancel_futures=True)
    assert first.result(0) is True
    assert second.cancelled()
    assert queue.state is QueueState.TERMINATED


def test_shutdown_of_a_queue_that_never_started_cancels_all() -> None:
    queue = RateEnvelopeQueue("q", workers=1)
    future = queue.submit(int)
    queue.shutdown()
    assert future.cancelled()
    assert queue.state is QueueState.TERMINATED


def test_submit_respects_the_capacity() -> None:
    queue = RateEnvelopeQueue("q", workers=1, capacity=1)
    queue.submit(int)
    with pytest.raises(CapacityExceededError):
        queue.submit(int)
    queue.terminate()


def test_submitted_work_that_is_rate_limited_runs_again_into_the_same_future() -> None:
    clock, calls = ManualClock(), []

    def limited() -> int:
        calls.append(1)
        if len(calls) == 1:
            raise RateLimited(5)
        return 42

    with RateEnvelopeQueue("q", workers=1, clock=clock) as queue:
        future = queue.submit(limited)
        clock.advance(10)
        assert future.result(LIMIT) == 42


def test_a_future_cancelled_by_its_user_is_done_for_those_who_wait() -> None:
    queue = RateEnvelopeQueue("q", workers=1)
    future = queue.submit(int)
    assert future.cancel()
    queue.terminate()
    assert concurrent.futures.wait([future], timeout=LIMIT).done == {future}
