"""Rates: a rate and a concurrency limit for a type, a type that cools, and why an envelope waits."""

import threading
import time

from rate_envelope_queue import Context, Envelope, Rate, RateEnvelopeQueue, RateLimited


def paced() -> None:
    """Emails start at five per second; the report, sent last, does not wait behind them."""
    began = time.monotonic()

    def deliver(ctx: Context, envelope: Envelope[str]) -> None:
        print(f"{envelope.payload} after {time.monotonic() - began:.1f} s")

    with RateEnvelopeQueue("mails", workers=1, rates={"email": Rate(5)}) as queue:
        queue.send(*(Envelope(deliver, type="email", payload=f"email {number}") for number in (1, 2, 3)))
        queue.send(Envelope(deliver, type="report", payload="report"))
    # the end of the block drains: throttled envelopes run at their pace


def two_at_once() -> None:
    """Four workers, but at most two exports at a time; explain names those that block the next."""
    finish, both_run = threading.Event(), threading.Barrier(3)

    def export(ctx: Context, envelope: Envelope[None]) -> None:
        if not finish.is_set():
            both_run.wait(timeout=5)
            finish.wait(timeout=5)

    with RateEnvelopeQueue("exports", workers=4, concurrency={"export": 2}) as queue:
        exports = [Envelope(export, type="export", id=number) for number in (1, 2, 3)]
        queue.send(*exports)
        both_run.wait(timeout=5)
        explained = queue.explain(exports[2])
        holders = sorted(str(holder.id) for holder in explained.held_by)
        print(f"export 3: {explained.reason.value}, held by {' and '.join(holders)}")
        finish.set()
        queue.join()
        print(f"export 3: {queue.explain(exports[2])}")


def cooled() -> None:
    """The server asks for a pause: the whole type waits, and nothing counts as failed."""
    was_told, answered = threading.Event(), threading.Semaphore(0)

    def call(ctx: Context, envelope: Envelope[str]) -> None:
        if not was_told.is_set():
            was_told.set()
            print(f"{envelope.payload}: 429 Too Many Requests")
            raise RateLimited(retry_after=0.5)
        print(f"{envelope.payload}: 200 OK")
        answered.release()

    with RateEnvelopeQueue("api", workers=1, rates={"api": "100/s"}) as queue:
        first, second = (Envelope(call, type="api", payload=path) for path in ("/users", "/orders"))
        queue.send(first)
        was_told.wait(timeout=5)
        queue.join()
        queue.send(second)
        print(f"/users: {queue.explain(first).reason.value}; /orders: {queue.explain(second).reason.value}")
        for _ in range(2):
            answered.acquire(timeout=5)  # join alone would not wait for delayed envelopes
        queue.join()
        print(f"done: {queue.stats().done}, failed: {queue.stats().failed}")


def main() -> None:
    paced()
    two_at_once()
    cooled()


if __name__ == "__main__":
    main()
