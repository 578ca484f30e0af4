"""Periodic envelopes: run at once, then again after each interval, until one raises StopEnvelope or the queue stops."""

import threading

from rate_envelope_queue import Context, Envelope, RateEnvelopeQueue, StopEnvelope, every


class Upload:
    """A long transfer on another system, whose progress has to be polled."""

    def __init__(self) -> None:
        self.percent = 0
        self.is_complete = threading.Event()

    def ask(self) -> int:
        self.percent += 25
        return self.percent


def poll(ctx: Context, envelope: Envelope[Upload]) -> None:
    percent = envelope.payload.ask()
    print(f"upload: {percent} %")
    if percent == 100:
        envelope.payload.is_complete.set()
        raise StopEnvelope  # not a failure: nothing is left to poll


def beat(ctx: Context, envelope: Envelope[None]) -> None:
    print("heartbeat")


def main() -> None:
    upload = Upload()
    with RateEnvelopeQueue("schedule", workers=1) as queue:
        queue.send(
            Envelope(poll, type="poll", payload=upload, interval=0.2, deadline=0.1),
            every(0.25, beat),  # the short form
        )
        upload.is_complete.wait(timeout=5)
    print(f"stopped: {queue.stats().delayed} envelope waits for its next tick")


if __name__ == "__main__":
    main()
