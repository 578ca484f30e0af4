"""No-op jobs of ours on any store: so many a second, processed until nothing is outstanding, or only put in."""

from __future__ import annotations

import asyncio
from itertools import count
from time import perf_counter
from typing import Any

from jobpipe import Jobpipe, JobRequest

from .harness import expect

BATCH = 1_000
LOOK = 0.002
"""Seconds between two looks at what is outstanding, once all have run."""
_WORKERS = 16

Payloads = list[dict[str, int]]


def batches(n: int) -> list[Payloads]:
    """So many payloads, in batches."""
    return [[{"n": number} for number in range(first, first + BATCH)] for first in range(0, n, BATCH)]


def processed(url: str, n: int, **options: Any) -> float:
    """Jobs a second, in one process, from the first enqueue on; options are those of the job type."""
    return asyncio.run(_process_all(url, n, options))


async def _process_all(url: str, n: int, options: dict[str, Any]) -> float:
    pipe = Jobpipe(url, queue_size=0)
    have_run = asyncio.Event()
    runs = count(1)

    @pipe.job("noop", **options)
    async def noop(payload: Any) -> None:
        if next(runs) == n:
            have_run.set()

    async with pipe, pipe.running(workers=_WORKERS):
        began = perf_counter()
        await _enqueue_all(pipe, n)
        await have_run.wait()
        stats = await pipe.stats()
        while stats.queued or stats.running:
            await asyncio.sleep(LOOK)
            stats = await pipe.stats()
        took = perf_counter() - began
    expect(stats.done, n, "jobs done")
    return n / took


def enqueued(url: str, n: int) -> float:
    """Jobs a second, with nobody to run them."""

    async def run() -> float:
        async with Jobpipe(url, queue_size=0) as pipe:
            began = perf_counter()
            await _enqueue_all(pipe, n)
            took = perf_counter() - began
            expect((await pipe.stats()).queued, n, "jobs queued")
        return n / took

    return asyncio.run(run())


async def _enqueue_all(pipe: Jobpipe, n: int) -> None:
    for payloads in batches(n):
        await pipe.enqueue_many([JobRequest(type="noop", payload=payload) for payload in payloads])
