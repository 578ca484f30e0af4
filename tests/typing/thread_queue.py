"""The thread queue as a user writes it: its options, its calls, and that it is an Executor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from datetime import datetime, timedelta
from typing import Any, assert_type

from rate_envelope_queue import (
    Context,
    Envelope,
    Explanation,
    ExponentialBackoff,
    HistogramSnapshot,
    HookBudget,
    Metrics,
    QueueState,
    Rate,
    RateEnvelopeQueue,
    Reason,
    Stats,
    SystemClock,
    logging_stamp,
    simple_drain_queue,
    simple_stop_queue,
)


def work(ctx: Context, envelope: Envelope[Any]) -> None: ...


def length(text: str, *, factor: int = 1) -> int:
    return len(text) * factor


def every_option_has_its_type() -> RateEnvelopeQueue:
    paces = {"mail": "100/min", "report": "5/s"}
    return RateEnvelopeQueue(
        "all",
        workers=4,
        stop_mode="stop",
        waiting=False,
        capacity=1000,
        stamps=[logging_stamp()],
        limiter=ExponentialBackoff(1, 30),
        on_periodic_error="backoff",
        rate=Rate(5, per=1, burst=10),
        rates=paces,
        concurrency={"mail": 2},
        hook_budget=HookBudget(fraction=0.5, floor=0.8),
        parent=Context(),
        metrics=True,
        clock=SystemClock(),
        replace_stuck=True,
    )


def a_rate_may_be_a_text_or_a_rate() -> None:
    RateEnvelopeQueue(
        "text", workers=1, rate="5/s", rates={"mail": Rate(1, per=timedelta(minutes=1)), "x": "1/h"}
    )
    RateEnvelopeQueue("none", workers=1, rate=None, rates=None, concurrency=None, limiter=None, parent=None)


def the_context_manager_gives_the_queue() -> None:
    with RateEnvelopeQueue("q", workers=1) as queue:
        assert_type(queue, RateEnvelopeQueue)
    with simple_drain_queue("drain", 4) as queue:
        assert_type(queue, RateEnvelopeQueue)
    assert_type(simple_stop_queue("stop", workers=4), RateEnvelopeQueue)


class MyQueue(RateEnvelopeQueue):
    """A queue of one's own."""


def the_context_manager_keeps_a_subclass() -> None:
    with MyQueue("mine", workers=1) as queue:
        assert_type(queue, MyQueue)


def calls_have_their_types(queue: RateEnvelopeQueue, envelope: Envelope[str]) -> None:
    queue.start()
    queue.send(envelope, Envelope(work), delay=timedelta(seconds=1))
    queue.send(envelope, block=True, timeout=2.5)
    queue.send()
    assert_type(queue.name, str)
    assert_type(queue.state, QueueState)
    assert_type(queue.capacity, int)
    assert_type(queue.occupied, int)
    assert_type(queue.blacklist, frozenset[str])
    assert_type(queue.allow("mail"), bool)
    assert_type(queue.cancel(envelope), bool)
    assert_type(queue.join(), bool)
    assert_type(queue.join(timeout=timedelta(seconds=1)), bool)
    assert_type(queue.stop(5, keep_waiting=False), bool)
    assert_type(queue.terminate(), list[Envelope[Any]])
    queue.pause()
    queue.resume()


def it_is_an_executor(queue: RateEnvelopeQueue) -> None:
    executor: Executor = queue
    assert_type(queue.submit(length, "text"), Future[int])
    assert_type(queue.submit(length, "text", factor=2), Future[int])
    assert_type(queue.submit(length, "text").result(timeout=1), int)
    assert_type(queue.submit(str.upper, "text"), Future[str])
    assert_type(queue.submit(lambda: 3.5), Future[float])
    assert_type(queue.map(length, ["a", "b"]), Iterator[int])
    executor.shutdown(wait=True, cancel_futures=True)


async def asyncio_may_run_in_it(queue: RateEnvelopeQueue) -> None:
    loop = asyncio.get_running_loop()
    assert_type(await loop.run_in_executor(queue, length, "text"), int)


def what_it_tells_of_itself(queue: RateEnvelopeQueue, envelope: Envelope[str]) -> None:
    stats = queue.stats()
    assert_type(stats, Stats)
    assert_type(stats.state, QueueState)
    assert_type(stats.ready + stats.running + stats.delayed + stats.occupied + stats.stuck, int)
    assert_type(stats.added + stats.done + stats.failed + stats.retried + stats.dropped + stats.panicked, int)
    metrics = queue.metrics()
    assert_type(metrics, Metrics)
    assert_type(metrics.queue_duration, HistogramSnapshot)
    assert_type(metrics.work_duration.counts, tuple[int, ...])
    explanation = queue.explain(envelope)
    assert_type(explanation, Explanation)
    assert_type(explanation.reason, Reason)
    assert_type(explanation.text, str)
    assert_type(explanation.until, datetime | None)
    assert_type(explanation.held_by, tuple[Envelope[Any], ...])
    assert_type(explanation.position, int | None)
