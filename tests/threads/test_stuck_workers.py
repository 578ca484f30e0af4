"""Workers that overrun: replaced if asked, counted, and no harm to a stop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rate_envelope_queue import Context, Envelope, HookBudget, QueueState, RateEnvelopeQueue
from rate_envelope_queue.clock import SystemClock
from rate_envelope_queue.testing import ManualClock

from ..support.waiting import LIMIT


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
