"""What is measured of a queue on a server, ours and the peers' alike, by the same clock.

Processed: from the first job put in, in batches, until the server shows nothing outstanding, with one process that puts in and
looks, and one or two that run. Enqueued: the same batches, with nobody to run them. Pick-up: see `pickup`.
"""

from __future__ import annotations

import asyncio
from time import monotonic, perf_counter

from .crew import Latencies, crew
from .harness import expect
from .pickup import WARM_UP, beats
from .processing import BATCH
from .queues import Queue, queue_of, run
from .waiting import Place

_LOOK = 0.02
"""Seconds between two looks at what is outstanding: a look costs the server time too."""
_FIRST = 200
"""Jobs that do not count: they open connections, and let the server read its scripts and statements."""
_PATIENCE = 60.0


def processed(place: Place, kind: str, n: int, processes: int) -> float:
    """Jobs a second."""

    async def measure(url: str) -> float:
        queue = queue_of(kind, url)
        await queue.open()
        with crew(kind, url, processes) as members:
            await _put_all(queue, _FIRST)
            await _until_done(queue)
            began = perf_counter()
            await _put_all(queue, n)
            await _until_done(queue)
            took = perf_counter() - began
            runs = len(members.finish(_FIRST + n))
        await queue.close()
        expect(runs, _FIRST + n, "jobs run")
        return n / took

    with place() as url:
        return run(measure(url))


def enqueued(place: Place, kind: str, n: int) -> float:
    """Jobs a second."""

    async def measure(url: str) -> float:
        queue = queue_of(kind, url)
        await queue.open()
        await _put_all(queue, _FIRST)
        began = perf_counter()
        await _put_all(queue, n)
        took = perf_counter() - began
        await queue.close()
        return n / took

    with place() as url:
        return run(measure(url))


def picked_up(place: Place, kind: str, n: int, processes: int) -> Latencies:
    """How long each job took, in one process that puts in and runs, or in two."""

    async def measure(url: str) -> Latencies:
        queue = queue_of(kind, url)
        await queue.open()
        if processes == 2:
            with crew(kind, url, 1) as members:
                await _put_slowly(queue, n)
                latencies = members.finish(n)
        else:
            latencies = []
            async with queue.running(lambda sent_at: latencies.append(monotonic() - sent_at)):
                await _put_slowly(queue, n)
        await queue.close()
        expect(len(latencies), n, "jobs picked up")
        return latencies[WARM_UP:]

    with place() as url:
        return run(measure(url))


async def _put_all(queue: Queue, n: int) -> None:
    for first in range(0, n, BATCH):
        await queue.put_many([monotonic() for _ in range(min(BATCH, n - first))])


async def _put_slowly(queue: Queue, n: int) -> None:
    for pause in beats(n):
        await asyncio.sleep(pause)
        await queue.put(monotonic())
    await _until_done(queue)


async def _until_done(queue: Queue) -> None:
    async with asyncio.timeout(_PATIENCE):
        while await queue.outstanding():  # noqa: ASYNC110 - a server that is asked has no event
            await asyncio.sleep(_LOOK)
