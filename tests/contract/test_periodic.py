"""Periodic envelopes: ticks, errors, back-off and the limiter."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rate_envelope_queue import Context, Envelope, ExponentialBackoff, every, retry_after

from ..support.waiting import LIMIT
from .conftest import Driver


def test_an_interval_runs_at_once_and_then_counts_from_the_end_of_each_run(driver: Driver) -> None:
    ran: list[float] = []

    def work(ctx: Context, envelope: Envelope[Any]) -> None:
        ran.append(driver.clock.now())
        ctx.wait(2)

    queue = driver.queue()
    queue.send(driver.envelope(work, interval=10))
    driver.advance(40)
    assert ran == [0, 12, 24, 36]


def test_a_week_of_hourly_runs_takes_no_time(driver: Driver) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(interval=3600))
    driver.advance("7 days")
    assert queue.stats().done == 7 * 24 + 1


def test_an_error_of_a_periodic_envelope_is_told_and_logged_and_it_goes_on(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[BaseException] = []

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError("tick failed")

    queue = driver.queue()
    hook = lambda ctx, envelope, error: told.append(error)  # noqa: E731
    queue.send(driver.envelope(fail, interval=10, failure_hook=hook))
    driver.advance(25)
    stats = queue.stats()
    assert (stats.failed, stats.retried, stats.dropped, stats.occupied) == (3, 0, 0, 1)
    assert len(told) == 3
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 3


def test_a_retry_moves_the_next_run_of_a_periodic_envelope(driver: Driver) -> None:
    ran: list[float] = []

    def fail_once(ctx: Context, envelope: Envelope[Any]) -> None:
        ran.append(driver.clock.now())
        if len(ran) == 1:
            raise ValueError

    queue = driver.queue()
    hook = lambda ctx, envelope, error: retry_after(3)  # noqa: E731
    queue.send(driver.envelope(fail_once, interval=10, failure_hook=hook))
    driver.advance(25)
    assert ran == [0, 3, 13, 23]


def test_backoff_runs_a_failing_periodic_envelope_when_the_limiter_allows(driver: Driver) -> None:
    ran: list[float] = []

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        ran.append(driver.clock.now())
        if len(ran) != 4:
            raise ValueError

    queue = driver.queue(on_periodic_error="backoff", limiter=ExponentialBackoff(1, 30))
    queue.send(driver.envelope(fail, interval=100))
    driver.advance(120)
    assert ran == [0, 1, 3, 7, 107, 108, 110, 114], (
        "1, 2, 4 s after failures; the interval and a reset after a success"
    )
    assert queue.stats().retried == 7


def test_the_default_limiter_backs_off_exponentially(driver: Driver) -> None:
    ran: list[float] = []

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        ran.append(driver.clock.now())
        raise ValueError

    queue = driver.queue(on_periodic_error="backoff")
    queue.send(driver.envelope(fail, interval=600))
    driver.advance(100)
    assert ran == [0, 1, 3, 7, 15, 31, 61, 91]


def test_a_limiter_that_raises_is_logged_and_the_interval_is_used(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def when(self, item: object) -> float:
            raise RuntimeError("no idea")

        def forget(self, item: object) -> None: ...
        def retries(self, item: object) -> int:
            return 0

    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError

    queue = driver.queue(on_periodic_error="backoff", limiter=Broken())
    queue.send(driver.envelope(fail, interval=10))
    driver.advance(25)
    assert queue.stats().failed == 3
    assert "limiter raised" in caplog.text


def test_a_limiter_that_would_delay_nothing_is_warned_about(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.queue(limiter=ExponentialBackoff(1, 30))
    assert "limiter= delays nothing" in caplog.text


def test_a_waiting_periodic_envelope_sent_again_runs_now_and_takes_one_place(driver: Driver) -> None:
    queue = driver.queue(capacity=1)
    envelope = Envelope(driver.kind(lambda ctx, envelope: None), interval=10)
    queue.send(envelope)
    driver.advance(5)
    queue.send(envelope)
    assert queue.join(LIMIT)
    assert (queue.stats().done, queue.occupied) == (2, 1)
    driver.advance(10)
    assert (queue.stats().done, queue.occupied) == (3, 1)


def test_every_makes_a_periodic_envelope(driver: Driver) -> None:
    queue = driver.queue()
    queue.send(every(2, driver.kind(lambda ctx, envelope: None), deadline=1))
    driver.advance(10)
    assert queue.stats().done == 6
