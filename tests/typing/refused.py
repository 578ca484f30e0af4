"""Calls that a type checker must refuse. One that stops being an error makes its `type: ignore` an unused one, which fails."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Decision,
    Envelope,
    Rate,
    RateEnvelopeQueue,
    Stats,
    drop,
    every,
    once,
    retry_after,
    stamp,
)
from rate_envelope_queue.simulation import simulate
from rate_envelope_queue.testing import AsyncManualClock, ManualClock


def send_mail(ctx: Context, envelope: Envelope[str]) -> None: ...


def count(ctx: Context, envelope: Envelope[int]) -> None: ...


def without_context(envelope: Envelope[str]) -> None: ...


def wrong_answer(ctx: Context, envelope: Envelope[str], error: Exception) -> str:
    return "retry"


def without_error(ctx: Context, envelope: Envelope[str]) -> Decision:
    return drop()


def length(text: str) -> int:
    return len(text)


async def length_soon(text: str) -> int:
    return len(text)


def envelopes() -> None:
    Envelope()  # type: ignore[call-arg]
    Envelope(send_mail, "mail", payload="x")  # type: ignore[call-arg]
    Envelope(without_context, payload="x")  # type: ignore[arg-type]
    Envelope(send_mail, payload=3)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", before_hook=count)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", failure_hook=wrong_answer)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", failure_hook=without_error)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", interval="5 s")  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", schedule=5)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", priority="high")  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", type=None)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", key=["no", "hash"])  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", stamps=length)  # type: ignore[arg-type]
    Envelope(send_mail, payload="x", retries=3)  # type: ignore[call-arg]
    once(send_mail, payload=3)  # type: ignore[arg-type]
    every(send_mail, 5, payload="x")  # type: ignore[arg-type]
    retry_after("5 s")  # type: ignore[arg-type]


def an_envelope_is_fixed(envelope: Envelope[str]) -> None:
    envelope.payload = 3  # type: ignore[assignment]
    envelope.type = "mail"  # type: ignore[misc]
    envelope.deadline = 5  # type: ignore[misc]
    envelopes: list[Envelope[int]] = [envelope]  # type: ignore[list-item]
    envelopes.clear()


def thread_queue(queue: RateEnvelopeQueue, envelope: Envelope[str], stats: Stats) -> None:
    RateEnvelopeQueue("q")  # type: ignore[call-arg]
    RateEnvelopeQueue("q", 4)  # type: ignore[call-arg]
    RateEnvelopeQueue("q", workers="4")  # type: ignore[arg-type]
    RateEnvelopeQueue("q", workers=1, stop_mode="flush")  # type: ignore[arg-type]
    RateEnvelopeQueue("q", workers=1, on_periodic_error="retry")  # type: ignore[arg-type]
    RateEnvelopeQueue("q", workers=1, rate=5)  # type: ignore[arg-type]
    RateEnvelopeQueue("q", workers=1, rates={"mail": 5})  # type: ignore[dict-item]
    RateEnvelopeQueue("q", workers=1, concurrency={"mail": "2"})  # type: ignore[dict-item]
    RateEnvelopeQueue("q", workers=1, limiter=Rate(5))  # type: ignore[arg-type]
    RateEnvelopeQueue("q", workers=1, clock=5)  # type: ignore[arg-type]
    queue.send(send_mail)  # type: ignore[arg-type]
    queue.send([envelope])  # type: ignore[arg-type]
    queue.send(envelope, delay="5 s")  # type: ignore[arg-type]
    queue.send(envelope, 5)  # type: ignore[arg-type]
    queue.stop(1, False)  # type: ignore[call-arg]
    queue.cancel(1)  # type: ignore[arg-type]
    queue.submit(length)  # type: ignore[call-arg]
    queue.submit(length, 5)  # type: ignore[arg-type]
    queue.submit(length, "text", factor=2)  # type: ignore[call-arg]
    queue.capacity = 5  # type: ignore[misc]
    stats.done = 5  # type: ignore[misc]


async def asyncio_queue(queue: AsyncRateEnvelopeQueue, envelope: Envelope[str]) -> None:
    AsyncRateEnvelopeQueue("q")  # type: ignore[call-arg]
    await queue.send(envelope, delay="5 s")  # type: ignore[arg-type]
    await queue.send_nowait(envelope)  # type: ignore[func-returns-value,misc]
    queue.send_nowait(envelope, block=True)  # type: ignore[call-arg]
    queue.submit(length_soon, 5)  # type: ignore[call-overload]
    queue.submit(length)  # type: ignore[call-overload]
    with queue:  # type: ignore[attr-defined]
        pass


def stamps() -> None:
    @stamp  # type: ignore[arg-type]
    def no_generator(ctx: Context, envelope: Envelope[Any]) -> None: ...

    @stamp  # type: ignore[arg-type]
    def yields_something(ctx: Context, envelope: Envelope[Any]) -> Generator[int, Any, None]:
        yield 1

    RateEnvelopeQueue("q", workers=1, stamps=[send_mail])  # type: ignore[list-item]


def values(clock: ManualClock) -> None:
    Rate("5/s")  # type: ignore[arg-type]
    Rate(5, burst=1.5)  # type: ignore[arg-type]
    ManualClock(start=5)  # type: ignore[arg-type]
    clock.advance(None)  # type: ignore[arg-type]
    simulate({"workers": 1}, ["now"], 1)  # type: ignore[list-item]
    simulate({"workers": 1}, [1.0], "long")  # type: ignore[arg-type]
    simulate({"workers": 1}, [1.0], lambda: 1.0)  # type: ignore[arg-type]
    simulate({"workers": 1}, [1.0], 1, 0)  # type: ignore[call-arg]


async def a_coroutine_is_awaited(clock: AsyncManualClock, queue: AsyncRateEnvelopeQueue) -> int:
    clock.advance("1 h")  # type: ignore[unused-coroutine]
    queue.join()  # type: ignore[unused-coroutine]
    return queue.submit(length_soon, "text")  # type: ignore[return-value]
