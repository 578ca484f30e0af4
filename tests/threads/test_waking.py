"""Who wakes whom, and when: alarms, ticks, the timer, and the lost wake-up."""

from __future__ import annotations

import threading
from math import inf
from typing import Any

import pytest

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue, every
from rate_envelope_queue.clock import Bell, SystemClock

from ..support.waiting import LIMIT


def noop(ctx: Context, envelope: Envelope[Any]) -> None: ...


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
