"""Calls as users write them: the types must come out as asserted. Checked by test_typing.py, never run."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_type

from rate_envelope_queue import (
    AsyncRateEnvelopeQueue,
    Context,
    Cron,
    Decision,
    Envelope,
    Every,
    Explanation,
    ExponentialBackoff,
    HookBudget,
    Metrics,
    QueueState,
    Rate,
    RateEnvelopeQueue,
    Stamp,
    Stats,
    before_after_stamp,
    drop,
    every,
    logging_stamp,
    once,
    retry_after,
    simple_drain_queue,
    stamp,
)
from rate_envelope_queue.testing import AsyncManualClock, ManualClock, Simulation, simulate


@dataclass
class Mail:
    to: str


def send_mail(ctx: Context, envelope: Envelope[Mail]) -> None:
    assert_type(envelope.payload, Mail)
    assert_type(ctx.attempt, int)
    assert_type(ctx.remaining(), float)
    assert_type(ctx.wait(1), bool)
    assert_type(ctx.done, bool)


async def send_mail_async(ctx: Context, envelope: Envelope[Mail]) -> str:
    return envelope.payload.to


def before(ctx: Context, envelope: Envelope[Mail]) -> None: ...


def on_failure(ctx: Context, envelope: Envelope[Mail], error: Exception) -> Decision | None:
    return retry_after(timedelta(seconds=5)) if envelope.payload.to else drop()


async def on_failure_async(ctx: Context, envelope: Envelope[Mail], error: BaseException) -> Decision:
    return drop()


mail = Envelope(
    send_mail, id=1, type="email", payload=Mail("a@b"), before_hook=before, failure_hook=on_failure
)
assert_type(mail, Envelope[Mail])
assert_type(mail.payload, Mail)
assert_type(mail.deadline, float)
assert_type(Envelope(send_mail_async, payload=Mail("a@b"), failure_hook=on_failure_async), Envelope[Mail])
assert_type(once(send_mail, payload=Mail("a@b"), deadline=3), Envelope[Mail])
assert_type(every(timedelta(minutes=5), send_mail, payload=Mail("a@b")), Envelope[Mail])


@stamp
def timed(ctx: Context, envelope: Envelope[Mail]) -> Generator[None, None, None]:
    yield


def noting(name: str, *, loud: bool = False) -> Stamp:
    @stamp
    def noted(ctx: Context, envelope: Envelope[Mail]) -> Generator[None, None, None]:
        yield

    return noted


def plain_stamp(stamps: list[Stamp]) -> list[Stamp]:
    return [timed, noting("a", loud=True), logging_stamp(), before_after_stamp(before, budget=2), *stamps]


def use_threads() -> None:
    queue = RateEnvelopeQueue(
        "mails",
        workers=4,
        stop_mode="stop",
        waiting=False,
        capacity=10,
        stamps=[timed],
        limiter=ExponentialBackoff(1, 30),
        on_periodic_error="backoff",
        rate=Rate(5, per=timedelta(minutes=1), burst=2),
        rates={"email": "5/s", "sms": Rate(1)},
        concurrency={"email": 2},
        hook_budget=HookBudget(fraction=0.5, floor=1),
        parent=Context(),
        metrics=True,
        clock=ManualClock(),
        replace_stuck=True,
    )
    with queue as same:
        assert_type(same, RateEnvelopeQueue)
    assert_type(queue.send(mail, mail, delay=timedelta(seconds=1), block=True, timeout=5), None)
    assert_type(queue.state, QueueState)
    assert_type(queue.stats(), Stats)
    assert_type(queue.metrics(), Metrics)
    assert_type(queue.explain(mail), Explanation)
    assert_type(queue.stop(5, keep_waiting=False), bool)
    assert_type(queue.submit(len, "abc"), Future[int])
    assert_type(queue.cancel(mail), bool)
    assert_type(queue.join(timeout=1), bool)
    assert_type(simple_drain_queue("q", 2), RateEnvelopeQueue)


async def double(x: int) -> int:
    return 2 * x


async def use_asyncio() -> None:
    async with AsyncRateEnvelopeQueue("mails", workers=4, clock=AsyncManualClock()) as queue:
        assert_type(queue, AsyncRateEnvelopeQueue)
        assert_type(await queue.send(mail), None)
        assert_type(queue.send_nowait(mail, delay=1), None)
        assert_type(queue.send_threadsafe(mail), Future[None])
        assert_type(queue.submit(double, 4), asyncio.Future[int])
        assert_type(queue.submit(len, "abc"), asyncio.Future[int])
        assert_type(await queue.stop(timeout=1), bool)
        assert_type(await queue.join(), bool)


assert_type(Every(5, jitter=1, fixed_rate=True).preview(3), list[datetime])
assert_type(Cron("0 3 * * *", tz="Europe/Berlin").next_after(datetime.now().astimezone()), datetime)
assert_type(simulate({"workers": 2, "rate": "5/s"}, [0.0, 1.0], 0.5), Simulation)
