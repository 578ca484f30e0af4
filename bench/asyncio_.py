"""The asyncio queue next to the bare `asyncio.Queue`, which has no feature: what ours cost is the difference.

The peer has as many worker coroutines, which await `get()`, the work, and call `task_done()`. Workers are
started before the clock, which runs from the first `await send` or `await put` to the end of `join()`.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

from rate_envelope_queue import AsyncRateEnvelopeQueue, Context, Envelope

from .harness import Case, Goal, expect, micros_each


def cases(*, quick: bool) -> list[Case]:
    n = 20_000 if quick else 100_000
    return [_one_off(n, 1, "1 worker"), _one_off(n, 8, "8 workers")]


def _one_off(n: int, workers: int, row: str) -> Case:
    return Case(
        name="one-off-asyncio",
        row=row,
        shows="one-off envelopes with an async no-op, one an `await send`, until the last has finished",
        unit="µs",
        ours=lambda: asyncio.run(_send_all(n, workers)),
        peer=lambda: asyncio.run(_put_all(n, workers)),
        peer_name="asyncio.Queue",
        ratio_of="ours/peer",
        goals=(Goal("<=", 1.5),),
    )


async def _noop(ctx: Context, envelope: Envelope[Any]) -> None:
    """The work."""


async def _send_all(n: int, workers: int) -> float:
    envelopes = [Envelope(_noop) for _ in range(n)]
    async with AsyncRateEnvelopeQueue("bench", workers=workers) as queue:
        send = queue.send
        await asyncio.sleep(0)
        began = perf_counter()
        for envelope in envelopes:
            await send(envelope)
        await queue.join()
        took = perf_counter() - began
        expect(queue.stats().done, n, "envelopes done")
    return micros_each(took, n)


async def _do_nothing() -> None:
    """The peer's work."""


async def _put_all(n: int, workers: int) -> float:
    queue: asyncio.Queue[int] = asyncio.Queue()
    done = 0

    async def work() -> None:
        nonlocal done
        while True:
            await queue.get()
            await _do_nothing()
            done += 1
            queue.task_done()

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    put = queue.put
    await asyncio.sleep(0)
    began = perf_counter()
    for item in range(n):
        await put(item)
    await queue.join()
    took = perf_counter() - began
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    expect(done, n, "items done")
    return micros_each(took, n)
