"""Retries and stamps: hooks see each run, the failure hook decides what follows, stamps surround the call."""

import time
from collections.abc import Generator
from dataclasses import dataclass, field
from threading import Event

from rate_envelope_queue import Context, Decision, Envelope, RateEnvelopeQueue, drop, retry_after, stamp


@dataclass
class Payment:
    amount: int
    errors: list[Exception] = field(default_factory=list)  # the bank's answers, in order
    settled: Event = field(default_factory=Event)


class CardExpired(Exception):
    """No retry will help."""


@stamp
def timed(ctx: Context, envelope: Envelope[Payment]) -> Generator[None, None, None]:
    began = time.perf_counter()
    try:
        yield  # the call; its exceptions are raised here
    finally:
        took = time.perf_counter() - began
        print(f"  payment {envelope.id}, attempt {ctx.attempt}: {took * 1e6:.0f} µs")


def charge(ctx: Context, envelope: Envelope[Payment]) -> None:
    if envelope.payload.errors:
        raise envelope.payload.errors.pop(0)


def confirm(ctx: Context, envelope: Envelope[Payment]) -> None:
    print(f"payment {envelope.id}: {envelope.payload.amount} received")
    envelope.payload.settled.set()


def decide(ctx: Context, envelope: Envelope[Payment], error: Exception) -> Decision:
    if isinstance(error, ConnectionError) and ctx.attempt < 3:
        print(f"payment {envelope.id}: {error}, next attempt in {0.1 * ctx.attempt:.1f} s")
        return retry_after(0.1 * ctx.attempt)
    print(f"payment {envelope.id}: given up, {type(error).__name__}")
    envelope.payload.settled.set()
    return drop()


def main() -> None:
    payments = [
        Payment(50),
        Payment(70, errors=[ConnectionError("bank is down"), ConnectionError("bank is down")]),
        Payment(90, errors=[CardExpired("04/19")]),
    ]
    with RateEnvelopeQueue("payments", workers=1, stamps=[timed]) as queue:
        for number, payment in enumerate(payments, start=1):
            queue.send(
                Envelope(
                    charge,
                    id=number,
                    type="payment",
                    payload=payment,
                    deadline=1,
                    success_hook=confirm,
                    failure_hook=decide,
                )
            )
        for payment in payments:
            payment.settled.wait(timeout=5)
    stats = queue.stats()
    print(f"done: {stats.done}, failed: {stats.failed}, retried: {stats.retried}, dropped: {stats.dropped}")


if __name__ == "__main__":
    main()
