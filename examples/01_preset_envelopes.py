"""Preset envelopes: envelopes sent before the start wait, and run in order once the queue starts."""

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue

ADDRESSES = ["ada@example.org", "grace@example.org", "alan@example.org"]


def send_email(ctx: Context, envelope: Envelope[str]) -> None:
    print(f"email {envelope.id} to {envelope.payload}, {ctx.remaining():.0f} s left")


def main() -> None:
    queue = RateEnvelopeQueue("emails", workers=1)
    for number, address in enumerate(ADDRESSES, start=1):
        queue.send(Envelope(send_email, id=number, type="email", payload=address, deadline=3))
    print(f"{queue.state.value}: {queue.occupied} envelopes wait for the start")

    queue.start()
    queue.stop()  # drains: ready envelopes run first
    print(f"{queue.state.value}: {queue.stats().done} emails sent")


if __name__ == "__main__":
    main()
