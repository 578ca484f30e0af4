"""What only the thread queue does: the Executor, stuck workers, signals, exits, and the lost wake-up."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import gc
import logging
import subprocess
import sys
import textwrap
import threading
import weakref
from collections.abc import Iterator
from math import inf
from typing import Any

import pytest

from rate_envelope_queue import (
    BadFieldsError,
    CapacityExceededError,
    Context,
    Envelope,
    HookBudget,
    QueueState,
    QueueTerminatedError,
    RateEnvelopeQueue,
    RateLimited,
    StopEnvelope,
    every,
    simple_drain_queue,
    simple_stop_queue,
    stamp,
)
from rate_envelope_queue.clock import Bell, SystemClock
from rate_envelope_queue.testing import ManualClock

from .support.waiting import LIMIT


def noop(ctx: Context, envelope: Envelope[Any]) -> None: ...


@pytest.fixture
def queue() -> Iterator[RateEnvelopeQueue]:
    with RateEnvelopeQueue("q", workers=2) as queue:
        yield queue
    queue.terminate()


# The Executor


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


# Stuck workers


def test_a_stuck_worker_is_replaced_at_once_and_counted() -> None:
    clock, release, began = ManualClock(), threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def stuck(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        release.wait(LIMIT)

    with RateEnvelopeQueue("q", workers=1, clock=clock, replace_stuck=True) as queue:
        queue.send(
            Envelope(stuck, deadline=5, failure_hook=lambda ctx, envelope, error: errors.append(error))
        )
        assert began.wait(LIMIT)
        clock.advance(5)
        assert queue.stats().stuck == 1
        assert queue.submit(pow, 2, 2).result(LIMIT) == 4, "the pool has kept its size"
        release.set()
        assert queue.join(LIMIT)
        assert queue.stats().stuck == 0
        assert type(errors[0]).__name__ == "DeadlineExceeded"
        assert queue.submit(pow, 2, 2).result(LIMIT) == 4
        assert len(queue._pool.workers) == 1


def test_without_replace_stuck_a_late_envelope_keeps_its_worker() -> None:
    clock, release, began = ManualClock(), threading.Event(), threading.Event()

    def stuck(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        release.wait(LIMIT)

    with RateEnvelopeQueue("q", workers=1, clock=clock) as queue:
        queue.send(Envelope(stuck, deadline=5))
        assert began.wait(LIMIT)
        clock.advance(5)
        assert queue.stats().stuck == 0
        release.set()


# Wake-ups, references, names


class _HoldingClock(SystemClock):
    """The system's clock, on which the timer, or a worker that waits for a tick itself, oversleeps until let go."""

    def __init__(self, role: str | None = None) -> None:
        self.role = role
        self.held, self.let_go = threading.Event(), threading.Event()
        self.waits = threading.Semaphore(0)

    def wait(self, bell: Bell, until: float, at_most: float = inf, who: object = None) -> bool:
        self.waits.release()
        rang = super().wait(bell, until, at_most)
        if self.role is not None and f"-{self.role}" in threading.current_thread().name:
            self.held.set()
            self.let_go.wait(LIMIT)
        return rang


def test_a_lost_wake_up_cannot_strand_work() -> None:
    """The insurance: the timer looks by itself, though nobody rang."""
    clock = _HoldingClock()
    with RateEnvelopeQueue("q", workers=1, clock=clock) as queue:
        assert clock.waits.acquire(timeout=LIMIT)  # the timer has looked, and sleeps
        while not queue._pool.idle:
            threading.Event().wait(0.001)
        queue._pool.is_waking = True  # as if a worker had been woken, and the ring had been lost
        ran = threading.Event()
        queue.send(Envelope(lambda ctx, envelope: ran.set()))
        assert not ran.wait(0.02)
        queue._poll()
        assert ran.wait(LIMIT)


def test_ticks_go_on_while_workers_that_waited_for_them_run_something_else() -> None:
    """An idle worker waits itself for what comes due soon; a send may take it away from that."""
    ticks = threading.Semaphore(0)
    go_on = threading.Event()
    before_insurance = 5
    with RateEnvelopeQueue("q", workers=4) as queue:
        queue.send(every(0.004, lambda ctx, envelope: ticks.release()))
        for _ in range(3):
            assert all(ticks.acquire(timeout=before_insurance) for _ in range(10))
            assert not queue.submit(go_on.is_set).result(before_insurance)
            queue.submit(go_on.wait, LIMIT)
        assert all(ticks.acquire(timeout=before_insurance) for _ in range(10))
        go_on.set()


def test_a_replaced_worker_that_ends_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rate_envelope_queue.drivers.timer._SOON", 3600)
    begun, go_on, ran = threading.Semaphore(0), threading.Event(), threading.Event()

    def block(ctx: Context, envelope: Envelope[Any]) -> None:
        begun.release()
        go_on.wait(LIMIT)

    with RateEnvelopeQueue("q", workers=1, replace_stuck=True, stop_mode="stop") as queue:
        queue.send(Envelope(lambda ctx, envelope: ran.set()), delay=0.5)
        queue.send(Envelope(block, deadline=0.001), Envelope(block))
        assert begun.acquire(timeout=LIMIT)
        assert begun.acquire(timeout=LIMIT)  # by the replacement
        go_on.set()
        assert ran.wait(5), "it takes the insurance"


def test_what_comes_due_before_that_which_a_worker_waits_for_is_not_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rate_envelope_queue.drivers.timer._SOON", 3600)
    ran = threading.Event()
    with RateEnvelopeQueue("q", workers=2, stop_mode="stop") as queue:
        queue.send(Envelope(lambda ctx, envelope: None), delay=600)
        assert queue.submit(int).result(LIMIT) == 0
        queue.send(Envelope(lambda ctx, envelope: ran.set()), delay=0.01)
        assert ran.wait(5), "it takes the insurance"


def test_a_queue_with_fast_ticks_stops_and_starts_at_once() -> None:
    ticks = threading.Semaphore(0)
    queue = RateEnvelopeQueue("q", workers=2)
    queue.send(every(0.004, lambda ctx, envelope: ticks.release()))
    for _ in range(5):
        queue.start()
        assert all(ticks.acquire(timeout=5) for _ in range(5))
        assert queue.stop(5)
        assert queue.occupied == queue.stats().delayed == 1
    queue.terminate()


def test_a_worker_of_before_a_stop_that_oversleeps_keeps_no_alarm_of_the_next_start() -> None:
    before_insurance = 5
    clock, ticks = _HoldingClock("worker"), threading.Semaphore(0)
    queue = RateEnvelopeQueue("q", workers=2, clock=clock, stop_mode="stop")
    queue.send(every(0.004, lambda ctx, envelope: ticks.release()))
    queue.start()
    assert clock.held.wait(LIMIT)
    clock.role = None
    assert queue.stop(LIMIT)
    queue.start()
    assert all(ticks.acquire(timeout=before_insurance) for _ in range(5))
    clock.let_go.set()
    assert all(ticks.acquire(timeout=before_insurance) for _ in range(5))
    assert queue.stop(LIMIT)
    queue.terminate()


def test_a_worker_that_is_woken_as_it_wakes_by_itself_is_woken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rate_envelope_queue.drivers.timer._SOON", LIMIT)
    clock, ran = _HoldingClock("worker"), threading.Semaphore(0)
    soon = Envelope(lambda ctx, envelope: ran.release())
    queue = RateEnvelopeQueue("q", workers=1, clock=clock)
    queue.start()
    queue.submit(queue.send, soon, delay=0.5)  # what the worker waits for itself, for it comes due so soon
    assert clock.held.wait(LIMIT)
    queue.send(Envelope(lambda ctx, envelope: ran.release()))  # rings for the one that is awake already
    clock.let_go.set()
    assert all(ran.acquire(timeout=LIMIT) for _ in range(2))
    while not queue._pool.idle:
        threading.Event().wait(0.001)
    assert queue.submit(int).result(LIMIT) == 0
    assert queue.stop(LIMIT)
    queue.terminate()


def test_a_timer_of_before_a_stop_that_oversleeps_keeps_no_alarm_of_the_next_start() -> None:
    before_insurance = 5
    clock, ran = _HoldingClock("timer"), threading.Event()
    queue = RateEnvelopeQueue("q", workers=1, clock=clock)
    queue.start()
    (first,) = (thread for thread in threading.enumerate() if thread.name == "q-timer")
    assert clock.waits.acquire(timeout=LIMIT)  # else it would see the stop before it falls asleep
    assert queue.stop(LIMIT)
    assert clock.held.wait(LIMIT)
    clock.role, clock.waits = None, threading.Semaphore(0)
    queue.start()
    assert clock.waits.acquire(timeout=LIMIT)  # the timer of this start: the worker has nothing to wait for
    clock.let_go.set()
    first.join(LIMIT)
    queue.send(Envelope(lambda ctx, envelope: ran.set()), delay=0.05)
    assert ran.wait(before_insurance)
    assert queue.stop(LIMIT)
    queue.terminate()


def test_a_worker_that_is_sent_home_while_it_waits_for_a_tick_takes_no_alarm_with_it() -> None:
    """A drain that is paused sends home who sleeps; when it goes on, the others still see to what their rate holds up."""
    before_insurance = 5
    clock, began, go = _HoldingClock("worker"), threading.Event(), threading.Event()
    slow: list[object] = []
    queue = RateEnvelopeQueue("q", workers=2, clock=clock, rates={"slow": "20/s"})
    queue.start()

    def hold() -> None:
        began.set()
        go.wait(LIMIT)

    queue.submit(hold)
    assert began.wait(LIMIT)
    queue.send(every(0.004, noop))
    assert clock.held.wait(LIMIT)
    clock.role = None
    queue.pause()
    queue.send(*(Envelope(lambda ctx, envelope: slow.append(envelope), type="slow") for _ in range(3)))
    assert not queue.stop(0)
    queue.resume()
    go.set()
    assert queue.stop(before_insurance)
    clock.let_go.set()
    assert len(slow) == 3
    queue.terminate()


class _SlowTimerClock(SystemClock):
    """The system's clock, on which the timer is held up between its look at the workers and its sleep."""

    def __init__(self) -> None:
        self.guard: threading.Lock | None = None  # which the timer holds meanwhile
        self.held, self.let_go = threading.Event(), threading.Event()

    @property
    def tick(self) -> float:  # type: ignore[override]
        if self.guard is not None and self.guard.locked():
            self.held.set()
            self.let_go.wait(LIMIT)
        return 0.001


def test_a_hook_that_begins_while_the_timer_looks_is_replaced_in_time() -> None:
    before_insurance = 5
    clock, began, go = _SlowTimerClock(), threading.Event(), threading.Event()
    reports, release = threading.Event(), threading.Event()

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        go.wait(LIMIT)

    def report(ctx: Context, envelope: Envelope[Any]) -> None:
        reports.set()
        release.wait(LIMIT)

    queue = RateEnvelopeQueue(
        "q", workers=1, clock=clock, replace_stuck=True, hook_budget=HookBudget(floor=0.02)
    )
    queue.start()
    queue.send(Envelope(work, success_hook=report))
    assert began.wait(LIMIT)
    clock.guard = queue._lock
    queue._timer.bell.ring()
    assert clock.held.wait(LIMIT)
    go.set()
    assert reports.wait(LIMIT)
    clock.let_go.set()
    try:
        assert queue.submit(int).result(before_insurance) == 0
    finally:
        release.set()
        assert queue.stop(LIMIT)
        queue.terminate()


def test_a_drain_is_ended_by_a_stuck_worker_if_nobody_else_is_left() -> None:
    """A drain that is paused sends home who sleeps; what is ready when it goes on is run by who was stuck."""
    release, ran = threading.Event(), threading.Event()
    queue = RateEnvelopeQueue("q", workers=1, replace_stuck=True)
    queue.start()
    queue.send(Envelope(lambda ctx, envelope: release.wait(LIMIT), deadline=0.01))
    while not queue.stats().stuck or not queue._pool.idle:
        threading.Event().wait(0.001)
    queue.pause()
    queue.send(Envelope(lambda ctx, envelope: ran.set()))
    assert not queue.stop(0)
    queue.resume()
    release.set()
    assert queue.stop(LIMIT)
    assert ran.is_set()
    assert (queue.state, queue.occupied, queue.stats().stuck) == (QueueState.STOPPED, 0, 0)
    queue.terminate()


def test_what_is_sent_again_while_it_is_stuck_is_run_by_a_drain() -> None:
    release, runs = threading.Event(), threading.Semaphore(0)

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        runs.release()
        release.wait(LIMIT)

    again = Envelope(work, deadline=0.01)
    queue = RateEnvelopeQueue("q", workers=1, replace_stuck=True)
    queue.start()
    queue.send(again)
    while not queue.stats().stuck or not queue._pool.idle:
        threading.Event().wait(0.001)
    queue.send(again)
    assert not queue.stop(0, keep_waiting=False)
    release.set()
    assert queue.stop(LIMIT)
    assert [runs.acquire(blocking=False) for _ in range(3)] == [True, True, False]
    assert queue.occupied == 0
    queue.terminate()


def test_what_has_come_due_while_the_timer_oversleeps_is_run_by_a_stop() -> None:
    before_insurance = 5
    clock, ran = _HoldingClock("timer"), threading.Event()
    queue = RateEnvelopeQueue("q", workers=2, clock=clock)
    queue.start()
    queue.send(Envelope(lambda ctx, envelope: ran.set()), delay=0.05)
    clock.wait(Bell(), clock.now() + 0.05)
    assert clock.held.wait(LIMIT)
    assert queue.stop(before_insurance)
    assert ran.is_set()
    clock.let_go.set()
    queue.terminate()


def test_an_envelope_that_has_run_can_be_collected(queue: RateEnvelopeQueue) -> None:
    class Payload: ...

    payload = Payload()
    reference = weakref.ref(payload)
    queue.send(Envelope(lambda ctx, envelope: None, payload=payload))
    del payload
    assert queue.join(LIMIT)
    while len(queue._pool.idle) < 2:
        threading.Event().wait(0.001)
    gc.collect()
    assert reference() is None


def test_what_an_envelope_returned_can_be_collected(queue: RateEnvelopeQueue) -> None:
    class Answer: ...

    references: list[weakref.ref[Answer]] = []

    def work(ctx: Context, envelope: Envelope[Any]) -> Answer:
        answer = Answer()
        references.append(weakref.ref(answer))
        return answer

    queue.send(Envelope(work))
    assert queue.join(LIMIT)
    while len(queue._pool.idle) < 2:
        threading.Event().wait(0.001)
    gc.collect()
    assert references[0]() is None


def test_a_failed_envelope_can_be_collected(
    queue: RateEnvelopeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Why: a log record that pytest keeps would keep the traceback, and with it the envelope.
    monkeypatch.setattr(logging.getLogger("rate_envelope_queue"), "propagate", False)

    class Payload: ...

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError

    payload = Payload()
    reference = weakref.ref(payload)
    queue.send(Envelope(fail, payload=payload))
    del payload
    assert queue.join(LIMIT)
    while len(queue._pool.idle) < 2:
        threading.Event().wait(0.001)
    gc.collect()
    assert reference() is None


def test_the_simple_queues_are_what_they_say() -> None:
    drain, stop = simple_drain_queue("d", 3), simple_stop_queue("s", 2)
    assert (drain.name, drain.capacity, drain._drains, drain._waiting) == ("d", 1_000_000, True, True)
    assert (stop.name, stop.capacity, stop._drains, stop._waiting) == ("s", 1_000_000, False, False)


def test_a_coroutine_function_is_refused_and_named(queue: RateEnvelopeQueue) -> None:
    async def coroutine(ctx: Context, envelope: Envelope[Any]) -> None: ...

    class Callable:
        async def __call__(self, ctx: Context, envelope: Envelope[Any]) -> None: ...

    for invoke in (coroutine, functools.partial(coroutine), Callable()):
        with pytest.raises(BadFieldsError, match=r"AsyncRateEnvelopeQueue.*invoke="):
            queue.send(Envelope(invoke))
    assert queue.stats().added == 0


def test_a_handler_knows_nothing_of_a_contextmanager_that_fails(queue: RateEnvelopeQueue) -> None:
    with pytest.raises(ZeroDivisionError), RateEnvelopeQueue("other", workers=1) as other:
        other.send(Envelope(lambda ctx, envelope: None))
        raise ZeroDivisionError
    assert other.state is QueueState.STOPPED
    assert other.stats().done == 1


def test_terminating_from_a_handler_ends_the_queue(queue: RateEnvelopeQueue) -> None:
    queue.send(Envelope(lambda ctx, envelope: queue.terminate()))
    assert queue.join(LIMIT)
    with pytest.raises(QueueTerminatedError):
        queue.send(Envelope(lambda ctx, envelope: None))


# Real processes


def run_script(body: str) -> subprocess.CompletedProcess[str]:
    script = textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT, check=False
    )


def test_stop_from_a_signal_handler_that_breaks_into_send_does_not_deadlock() -> None:
    done = run_script("""
        import itertools, signal, threading
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        queue = RateEnvelopeQueue("q", workers=2)
        answers = []
        signal.signal(signal.SIGALRM, lambda *_: answers.append(queue.stop()))
        queue.start()
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0003)
        work = lambda ctx, envelope: None
        starts = 0
        for i in itertools.count():
            try:
                queue.send(Envelope(work))
            except RuntimeError:
                starts += 1
                queue.start()
            if len(answers) > 300:
                break
        signal.setitimer(signal.ITIMER_REAL, 0)
        queue.start()
        queue.stop()
        stats = queue.stats()
        assert stats.done + stats.occupied == stats.added, stats
        print("ended", set(answers) <= {True, False})
    """)
    assert done.stdout == "ended True\n", done.stderr


def test_stop_from_atexit_drains() -> None:
    done = run_script("""
        import atexit
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        queue = RateEnvelopeQueue("q", workers=1)
        queue.start()
        atexit.register(lambda: print("stopped", queue.stop(), queue.stats().done))
        queue.send(*[Envelope(lambda ctx, envelope: None) for _ in range(100)])
    """)
    assert done.stdout == "stopped True 100\n", done.stderr


def test_a_program_that_forgets_to_stop_ends_all_the_same() -> None:
    done = run_script("""
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        queue = RateEnvelopeQueue("q", workers=2)
        queue.start()
        queue.send(Envelope(lambda ctx, envelope: None, interval=60))
        queue.join()
        print("end of main")
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("end of main\n", "", 0)


def test_a_stamp_shows_its_name() -> None:
    @stamp
    def timed(ctx: Context, envelope: Envelope[Any]) -> Any:
        yield

    assert timed.__name__ == "timed"


def test_a_start_that_gets_no_thread_leaves_a_queue_that_can_be_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queue = RateEnvelopeQueue("q", workers=3)
    queue.send(Envelope(lambda ctx, envelope: None))
    started: list[str] = []
    start = threading.Thread.start

    def scarce(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread.name)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", scarce)
        with pytest.raises(RuntimeError, match="can't start"):
            queue.start()
    assert queue.stop(LIMIT)
    assert (queue.state, queue.occupied) == (QueueState.STOPPED, 1)
    queue.start()
    assert queue.join(LIMIT)
    assert queue.stop(LIMIT)
    assert queue.stats().done == 1


def test_a_run_that_succeeded_on_a_replaced_worker_is_settled() -> None:
    clock, release, began = ManualClock(), threading.Event(), threading.Event()

    def slow_report(ctx: Context, envelope: Envelope[Any]) -> None:
        began.set()
        release.wait(LIMIT)

    with RateEnvelopeQueue("q", workers=1, clock=clock, replace_stuck=True) as queue:
        queue.send(Envelope(lambda ctx, envelope: None, success_hook=slow_report))
        assert began.wait(LIMIT)
        clock.advance(5)
        assert queue.stats().stuck == 1
        release.set()
        assert queue.join(LIMIT)
        assert (queue.stats().done, queue.occupied, queue.stats().stuck) == (1, 0, 0)


def test_a_call_that_returns_a_coroutine_has_failed(queue: RateEnvelopeQueue) -> None:
    async def coroutine(ctx: Context, envelope: Envelope[Any]) -> None: ...

    for options in ({}, {"deadline": 5}):
        queue.send(Envelope(lambda ctx, envelope: coroutine(ctx, envelope), **options))  # type: ignore[arg-type]
    assert queue.join(LIMIT)
    assert queue.stats().failed == 2


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


def test_an_interrupt_from_the_keyboard_in_send_leaves_no_lock_held() -> None:
    done = run_script("""
        import signal
        from rate_envelope_queue import Envelope, RateEnvelopeQueue
        work = lambda ctx, envelope: None
        for round in range(60):
            queue = RateEnvelopeQueue("q", workers=1)
            queue.start()
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + round * 0.00003)
                while True:
                    queue.send(Envelope(work))
            except KeyboardInterrupt:
                pass
            assert queue.stop(10), round
        print("all stopped")
    """)
    assert done.stdout == "all stopped\n", done.stderr


def test_a_parent_cancelled_by_a_signal_handler_that_breaks_into_send_does_not_deadlock() -> None:
    done = run_script("""
        import signal
        from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue
        work = lambda ctx, envelope: None
        for round in range(40):
            parent = Context()
            queue = RateEnvelopeQueue("q", workers=1, parent=parent)
            queue.start()
            signal.signal(signal.SIGALRM, lambda *_: parent.cancel())
            signal.setitimer(signal.ITIMER_REAL, 0.0005 + round * 0.00005)
            try:
                while True:
                    queue.send(Envelope(work))
            except RuntimeError:
                pass
            assert queue.stop(10), round
        print("all stopped")
    """)
    assert done.stdout == "all stopped\n", done.stderr
