"""The asyncio queue as a user writes it: what is awaited, and what `submit` returns for either kind of function."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, assert_type

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Envelope,
    Explanation,
    HookBudget,
    MaxOf,
    Metrics,
    QueueState,
    Rate,
    Stats,
    SystemClock,
    TokenBucket,
    logging_stamp,
)
from rate_envelope_queue.testing import AsyncManualClock


async def work(ctx: Context, envelope: Envelope[Any]) -> None: ...


def length(text: str, *, factor: int = 1) -> int:
    return len(text) * factor


async def length_soon(text: str, *, factor: int = 1) -> int:
    return len(text) * factor


class Fetcher:
    async def fetch(self, url: str) -> bytes:
        return url.encode()


def every_option_has_its_type() -> AsyncRateEnvelopeQueue:
    AsyncRateEnvelopeQueue("test", workers=1, clock=AsyncManualClock())
    return AsyncRateEnvelopeQueue(
        "all",
        workers=4,
        stop_mode="drain",
        waiting=True,
        capacity=1000,
        stamps=(logging_stamp(),),
        limiter=MaxOf(TokenBucket(5, burst=10)),
        on_periodic_error="interval",
        rate="5/s",
        rates={"mail": Rate(1)},
        concurrency={"mail": 2},
        hook_budget=HookBudget(),
        parent=Context(),
        metrics=False,
        clock=SystemClock(),
        replace_stuck=False,
    )


async def the_context_manager_gives_the_queue() -> None:
    async with AsyncRateEnvelopeQueue("q", workers=1) as queue:
        assert_type(queue, AsyncRateEnvelopeQueue)


async def calls_have_their_types(queue: AsyncRateEnvelopeQueue, envelope: Envelope[str]) -> None:
    await queue.start()
    await queue.send(envelope, Envelope(work), delay=timedelta(seconds=1))
    await queue.send(envelope, block=True, timeout=2.5)
    queue.send_nowait(envelope, delay=1)
    assert_type(queue.send_threadsafe(envelope), Future[None])
    assert_type(queue.state, QueueState)
    assert_type(queue.cancel(envelope), bool)
    assert_type(queue.allow("mail"), bool)
    assert_type(await queue.join(timeout=1), bool)
    assert_type(await queue.stop(timedelta(seconds=5), keep_waiting=False), bool)
    assert_type(await queue.terminate(), list[Envelope[Any]])
    assert_type(queue.stats(), Stats)
    assert_type(queue.metrics(), Metrics)
    assert_type(queue.explain(envelope), Explanation)
    queue.pause()
    queue.resume()


async def submit_gives_the_result_of_either_kind(queue: AsyncRateEnvelopeQueue) -> None:
    assert_type(queue.submit(length, "text"), asyncio.Future[int])
    assert_type(queue.submit(length_soon, "text"), asyncio.Future[int])
    assert_type(queue.submit(length_soon, "text", factor=2), asyncio.Future[int])
    assert_type(await queue.submit(length, "text", factor=2), int)
    assert_type(await queue.submit(length_soon, "text"), int)
    assert_type(queue.submit(Fetcher().fetch, "https://example.org"), asyncio.Future[bytes])
    assert_type(
        await asyncio.gather(queue.submit(length, "a"), queue.submit(length_soon, "b")), tuple[int, int]
    )
