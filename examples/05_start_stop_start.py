"""Start, stop, start: a stopped queue loses nothing; delayed envelopes continue after the next start."""

import threading

from rate_envelope_queue import Context, Envelope, QueueNotRunningError, RateEnvelopeQueue


def remind(ctx: Context, envelope: Envelope[threading.Event]) -> None:
    print(f"reminder: {envelope.id}")
    envelope.payload.set()


def main() -> None:
    queue = RateEnvelopeQueue("reminders", workers=2)
    drunk, stretched, slept = threading.Event(), threading.Event(), threading.Event()

    queue.start()
    queue.send(Envelope(remind, id="drink water", payload=drunk))
    queue.send(Envelope(remind, id="stretch", payload=stretched), delay=0.5)
    queue.stop()
    print(f"{queue.state.value}: {queue.stats().delayed} reminder is kept")

    try:
        queue.send(Envelope(remind, id="sleep", payload=slept))
    except QueueNotRunningError as error:
        print(f"refused: {error}")

    queue.start()
    print(f"{queue.state.value} again")
    queue.send(Envelope(remind, id="sleep", payload=slept))
    slept.wait(timeout=5)
    stretched.wait(timeout=5)
    queue.stop()
    print(f"{queue.state.value}: {queue.stats().done} reminders given, {queue.occupied} left")


if __name__ == "__main__":
    main()
