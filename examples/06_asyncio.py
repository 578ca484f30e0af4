"""The asyncio queue, where it differs: handlers are awaited, a deadline cancels the coroutine, and other threads may send."""

import asyncio
import threading

from rate_envelope_queue import AsyncRateEnvelopeQueue, Context, Envelope, once


async def fetch(url: str) -> int:
    await asyncio.sleep(0.05)
    return len(url)


async def download(ctx: Context, envelope: Envelope[str]) -> None:
    print(f"{envelope.payload}: {await fetch(envelope.payload)} bytes")


async def hang(ctx: Context, envelope: Envelope[None]) -> None:
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        print("hang: cancelled, time to clean up")
        raise


async def report(ctx: Context, envelope: Envelope[None], error: Exception) -> None:
    print(f"hang failed: {type(error).__name__}")


def compress(ctx: Context, envelope: Envelope[str]) -> None:
    is_main = threading.current_thread() is threading.main_thread()
    print(f"{envelope.payload}: compressed {'on the loop' if is_main else 'in a thread'}")


def sensor(queue: AsyncRateEnvelopeQueue) -> None:
    """Runs in its own thread, like the callback of a driver."""
    queue.send_threadsafe(once(download, payload="sensor://kitchen")).result()
    print("sensor: sent")


async def main() -> None:
    async with AsyncRateEnvelopeQueue("downloads", workers=4) as queue:
        await queue.send(once(download, payload="https://example.org"))
        await queue.send(once(compress, payload="archive"))  # a plain function does not block the loop
        await queue.send(Envelope(hang, deadline=0.2, failure_hook=report))
        await queue.join()

        sizes = await asyncio.gather(*(queue.submit(fetch, f"page-{number}") for number in range(8, 12)))
        print(f"submitted: {sizes}")

        await asyncio.to_thread(sensor, queue)
    print(f"done: {queue.stats().done}, failed: {queue.stats().failed}")


if __name__ == "__main__":
    asyncio.run(main())
