"""Ours as one of the queues that are measured: with leases, attempts, history and fencing on, as always."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from jobpipe import Jobpipe, JobRequest

from .queues import Work

_WORKERS = 16


class JobpipeQueue:
    """A pipe with one type of job."""

    seconds = 0.0
    """That each job waits for something."""

    def __init__(self, url: str) -> None:
        self._pipe = Jobpipe(url, queue_size=0)

    async def open(self) -> None:
        await self._pipe.__aenter__()

    async def put(self, payload: float) -> object:
        return await self._pipe.enqueue("work", payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        return await self._pipe.enqueue_many(
            [JobRequest(type="work", payload=payload) for payload in payloads]
        )

    async def outstanding(self) -> int:
        stats = await self._pipe.stats()
        return stats.scheduled + stats.queued + stats.running

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        @self._pipe.job("work")
        async def run(payload: float) -> None:
            work(payload)
            if self.seconds:
                await asyncio.sleep(self.seconds)

        async with self._pipe.running(workers=_WORKERS):
            yield

    async def close(self) -> None:
        await self._pipe.__aexit__(None, None, None)


class WaitingJobpipeQueue(JobpipeQueue):
    """The same with jobs as most are: they wait for somebody else."""

    seconds = 0.01
