"""Metrics, as prometheus_client shows them: what counts as an add or a retry, and how long things took by the clock."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from rate_envelope_queue import Context, Envelope, ExponentialBackoff, RateLimited, every, retry_after
from rate_envelope_queue.integrations.prometheus import Exporter

from ..support.gates import Gate
from ..support.waiting import LIMIT
from .conftest import Driver, Queue

GAUGES_OF_WORK = (
    "workqueue_depth",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "rate_envelope_queue_occupied",
    "rate_envelope_queue_stuck",
)


class Scrape:
    """What a scrape of one queue shows; the test's thread is not that of the loop."""

    def __init__(self, queue: Queue) -> None:
        self._registry = CollectorRegistry()
        exported: Any = getattr(queue, "_queue", queue)  # the queue itself, not what calls it on its loop
        Exporter(exported, registry=self._registry)

    def __getitem__(self, sample: str) -> float:
        (value,) = [found.value for found in self._samples() if found.name == sample]
        return float(value)

    def buckets(self, histogram: str) -> dict[str, float]:
        """How many were at most so long, by bound."""
        name = f"{histogram}_bucket"
        return {found.labels["le"]: found.value for found in self._samples() if found.name == name}

    def _samples(self) -> list[Any]:
        text = generate_latest(self._registry).decode()
        return [found for family in text_string_to_metric_families(text) for found in family.samples]


def test_each_envelope_sent_is_an_add_and_what_is_ready_is_the_depth(driver: Driver) -> None:
    queue = driver.queue(start=False)
    scrape = Scrape(queue)
    queue.send(driver.envelope())
    queue.send(driver.envelope(), driver.envelope())
    assert (scrape["workqueue_adds_total"], scrape["workqueue_depth"]) == (3, 3)
    queue.start()
    assert queue.join(LIMIT)
    assert (scrape["workqueue_adds_total"], scrape["workqueue_depth"]) == (3, 0)


def test_collapsed_sends_are_no_adds(driver: Driver, gate: Gate) -> None:
    queue = driver.queue(start=False)
    scrape = Scrape(queue)
    envelope = driver.envelope(gate.pass_through)
    for _ in range(5):
        queue.send(envelope)
    assert scrape["workqueue_adds_total"] == 1
    queue.start()
    gate.wait_reached()
    for _ in range(5):
        queue.send(envelope)  # during its run: one more, when it becomes ready
    gate.open(2)
    assert queue.join(LIMIT)
    assert scrape["workqueue_adds_total"] == 2


def test_a_delayed_envelope_is_an_add_when_it_becomes_ready(driver: Driver) -> None:
    queue = driver.queue()
    scrape = Scrape(queue)
    queue.send(driver.envelope(), delay=10)
    assert (scrape["workqueue_adds_total"], scrape["rate_envelope_queue_occupied"]) == (0, 1)
    driver.advance(10)
    assert (scrape["workqueue_adds_total"], scrape["rate_envelope_queue_occupied"]) == (1, 0)


def test_ticks_are_adds_and_no_retries(driver: Driver) -> None:
    queue = driver.queue()
    scrape = Scrape(queue)
    queue.send(every(10, driver.kind(lambda ctx, envelope: None)))
    driver.advance(35)
    assert (scrape["workqueue_adds_total"], scrape["workqueue_retries_total"]) == (4, 0)


def test_a_failed_tick_is_a_retry_only_if_it_is_decided_to_be_one(driver: Driver) -> None:
    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError

    plain, decided = driver.queue(name="plain"), driver.queue(name="decided")
    plain.send(driver.envelope(fail, interval=10))
    decided.send(driver.envelope(fail, interval=10, failure_hook=lambda *_: retry_after(5)))
    driver.advance(20)
    assert Scrape(plain)["workqueue_retries_total"] == 0
    assert Scrape(decided)["workqueue_retries_total"] == 5


def test_retries_and_backoffs_are_counted_and_become_adds(driver: Driver) -> None:
    def fail_twice(ctx: Context, envelope: Envelope[Any]) -> None:
        if ctx.attempt < 3:
            raise ValueError

    once = driver.queue(name="once")
    once.send(driver.envelope(fail_twice, failure_hook=lambda *_: retry_after(1)))
    backoff = ExponentialBackoff(1, 30)
    periodic = driver.queue(name="periodic", on_periodic_error="backoff", limiter=backoff)
    periodic.send(driver.envelope(fail_twice, interval=100))
    driver.advance(50)
    for queue in (once, periodic):
        scrape = Scrape(queue)
        assert (scrape["workqueue_retries_total"], scrape["workqueue_adds_total"]) == (2, 3)


def test_being_rate_limited_is_no_retry(driver: Driver) -> None:
    def slow_down_once(ctx: Context, envelope: Envelope[Any]) -> None:
        if driver.clock.now() == 0:
            raise RateLimited(5)

    queue = driver.queue()
    queue.send(driver.envelope(slow_down_once))
    driver.advance(10)
    scrape = Scrape(queue)
    assert (scrape["workqueue_adds_total"], scrape["workqueue_retries_total"]) == (2, 0)


@pytest.mark.parametrize(
    ("waited", "first_bound"),
    [(0, "1e-08"), (1e-7, "1e-07"), (0.0005, "0.001"), (1, "1.0"), (1.5, "10.0"), (10, "10.0"), (11, "+Inf")],
)
def test_the_wait_is_in_the_bucket_of_its_length(driver: Driver, waited: float, first_bound: str) -> None:
    queue = driver.queue()
    queue.pause()
    queue.send(driver.envelope())
    driver.advance(waited)
    queue.resume()
    assert queue.join(LIMIT)
    scrape = Scrape(queue)
    buckets = scrape.buckets("workqueue_queue_duration_seconds")
    bounds = [*(repr(10.0**power) for power in range(-8, 2)), "+Inf"]
    first = bounds.index(first_bound)
    assert buckets == {bound: float(at >= first) for at, bound in enumerate(bounds)}
    assert scrape["workqueue_queue_duration_seconds_sum"] == waited
    assert scrape["workqueue_queue_duration_seconds_count"] == 1


def test_the_work_is_in_the_bucket_of_its_length(driver: Driver) -> None:
    queue = driver.queue(workers=3)
    for seconds in (0.25, 2, 60):
        queue.send(driver.envelope(lambda ctx, envelope: ctx.wait(envelope.payload), payload=seconds))
    driver.advance(60)
    scrape = Scrape(queue)
    buckets = scrape.buckets("workqueue_work_duration_seconds")
    assert [buckets[bound] for bound in ("0.1", "1.0", "10.0", "+Inf")] == [0, 1, 2, 3]
    assert scrape["workqueue_work_duration_seconds_sum"] == 62.25
    assert scrape["workqueue_queue_duration_seconds_sum"] == 0


def test_a_delayed_envelope_waits_in_no_histogram(driver: Driver) -> None:
    queue = driver.queue()
    queue.send(driver.envelope(), delay=3600)
    driver.advance(3600)
    scrape = Scrape(queue)
    assert scrape["workqueue_queue_duration_seconds_count"] == 1
    assert scrape["workqueue_queue_duration_seconds_sum"] == 0


def test_what_runs_ages_and_all_is_zero_when_idle(driver: Driver) -> None:
    queue = driver.queue(workers=2)
    scrape = Scrape(queue)
    assert [scrape[gauge] for gauge in GAUGES_OF_WORK] == [0] * len(GAUGES_OF_WORK)
    queue.send(driver.envelope(lambda ctx, envelope: ctx.wait(10)))
    driver.advance(3)
    queue.send(driver.envelope(lambda ctx, envelope: ctx.wait(7)))
    driver.advance(2)
    assert scrape["workqueue_unfinished_work_seconds"] == 5 + 2
    assert scrape["workqueue_longest_running_processor_seconds"] == 5
    assert scrape["rate_envelope_queue_occupied"] == 2
    driver.advance(5)
    assert queue.join(LIMIT)
    assert [scrape[gauge] for gauge in GAUGES_OF_WORK] == [0] * len(GAUGES_OF_WORK)


def test_counting_goes_on_over_restarts(driver: Driver) -> None:
    queue = driver.queue()
    scrape = Scrape(queue)
    for starts in (1, 2, 3):
        queue.start()
        queue.send(driver.envelope(), driver.envelope())
        assert queue.stop(LIMIT)
        assert scrape["workqueue_adds_total"] == 2 * starts
        assert scrape["workqueue_work_duration_seconds_count"] == 2 * starts
    queue.terminate()
    assert scrape["workqueue_adds_total"] == 6


def test_the_queues_own_counters(driver: Driver) -> None:
    def fail(ctx: Context, envelope: Envelope[Any]) -> None:
        raise ValueError

    def panic(ctx: Context, envelope: Envelope[Any]) -> None:
        raise SystemExit

    queue = driver.queue(capacity=7, rates={"slow": "1/h"})
    queue.send(driver.envelope(fail), driver.envelope(panic), driver.envelope(type="slow"))
    queue.send(driver.envelope(type="slow"), driver.envelope(type="slow"))
    driver.advance(1)
    scrape = Scrape(queue)
    assert scrape["rate_envelope_queue_dropped_total"] == 1
    assert scrape["rate_envelope_queue_panics_total"] == 1
    assert scrape["rate_envelope_queue_throttled_total"] == 2
    assert scrape["rate_envelope_queue_capacity"] == 7
    assert scrape["rate_envelope_queue_occupied"] == 2
    assert scrape["workqueue_depth"] == 2  # what is throttled is ready
