"""Preset and dynamic together: preset envelopes warm a cache while requests come in and overtake them."""

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue, every

PAGES = ["home", "prices", "about", "contact"]


def warm(ctx: Context, envelope: Envelope[str]) -> None:
    ctx.wait(0.1)
    print(f"warmed {envelope.payload}")


def answer(ctx: Context, envelope: Envelope[str]) -> None:
    print(f"answered {envelope.payload}")


def evict(ctx: Context, envelope: Envelope[None]) -> None:
    print("evicted what is old")


def main() -> None:
    queue = RateEnvelopeQueue("cache", workers=1)
    queue.send(*(Envelope(warm, type="warm-up", payload=page) for page in PAGES))
    queue.send(every(60, evict))
    print(f"preset: {queue.occupied} envelopes")

    with queue:
        for visitor in ("ada", "grace"):
            queue.send(Envelope(answer, type="request", payload=visitor, priority=10))
        queue.join()  # until nothing is ready or running; the next eviction is neither
        print(f"dynamic: 2 requests; {queue.stats().delayed} tick is still to come")


if __name__ == "__main__":
    main()
