"""Dynamic sending: send while the queue runs; a full queue blocks the sender, and a key makes work unique."""

from threading import Event

from rate_envelope_queue import CapacityExceededError, Context, Envelope, RateEnvelopeQueue


def resize(ctx: Context, envelope: Envelope[str]) -> None:
    ctx.wait(0.05)
    print(f"resized {envelope.payload}")


def rebuild(ctx: Context, envelope: Envelope[Event]) -> None:
    print(f"rebuilt {envelope.key}")
    envelope.payload.set()


def image(name: str) -> Envelope[str]:
    return Envelope(resize, type="image", payload=name)


def main() -> None:
    with RateEnvelopeQueue("images", workers=1, capacity=3) as queue:
        for number in range(1, 7):
            queue.send(image(f"photo-{number}.jpg"), block=True)  # waits while the queue is full
        queue.join()

        try:
            queue.send(*(image(f"scan-{number}.tiff") for number in range(1, 10)))
        except CapacityExceededError as error:
            print(f"refused all {error.needed} scans: there are {error.capacity} places")

        rebuilt = Event()
        for _ in range(3):  # one key, so one run, a moment from now
            queue.send(Envelope(rebuild, key="album summer", payload=rebuilt), delay=0.5)
        print(f"rebuilds that wait: {queue.stats().delayed}")
        rebuilt.wait(timeout=5)
    print(f"done: {queue.stats().done}")


if __name__ == "__main__":
    main()
