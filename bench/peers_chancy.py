"""chancy on PostgreSQL at its best for no-op work: the executor on the event loop, no plugins, many jobs at once.

It polls again as soon as a job is done, and writes outcomes fifty times a second instead of once, which is
what its throughput and the end of the clock hang on.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from chancy import Chancy, Job, Queue, Worker

from .queues import Work

_QUEUE = "default"
"""Why so: a worker makes a queue of this name, with a pool of processes, where there is none."""
_AT_ONCE = 500
_WRITE_EVERY = 0.02
_UNFINISHED = ("pending", "running", "retrying")

_works: list[Work] = []
"""What the process calls. Why here: chancy finds a job's function by the name of its module."""


async def work_once(*, payload: float) -> None:
    """The job."""
    _works[-1](payload)


class ChancyQueue:
    """An app with one queue."""

    def __init__(self, url: str) -> None:
        quiet = logging.getLogger("bench.chancy")
        quiet.setLevel(logging.WARNING)
        self._chancy = Chancy(url, no_default_plugins=True, log=quiet)
        self._job = Job.from_func(work_once, queue=_QUEUE)

    async def open(self) -> None:
        await self._chancy.__aenter__()
        if not await self._chancy.is_up_to_date():
            await self._chancy.migrate()
        queue = Queue(
            _QUEUE,
            executor=Chancy.Executor.Async,
            concurrency=_AT_ONCE,
            polling_interval=1,
            eager_polling=True,
        )
        await self._chancy.declare(queue, upsert=True)

    async def put(self, payload: float) -> object:
        return await self._chancy.push(self._job.with_kwargs(payload=payload))

    async def put_many(self, payloads: Sequence[float]) -> object:
        jobs = [self._job.with_kwargs(payload=payload) for payload in payloads]
        return [references async for references in self._chancy.push_many(jobs)]

    async def outstanding(self) -> int:
        async with self._chancy.pool.connection() as connection:
            found = await connection.execute(
                "SELECT count(*) FROM chancy_jobs WHERE state = ANY(%s)", [list(_UNFINISHED)]
            )
            row = await found.fetchone()
        return int(row[0])

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        _works.append(work)
        worker = Worker(self._chancy, register_signal_handlers=False)
        worker.send_outgoing_interval = _WRITE_EVERY
        async with worker:
            yield

    async def close(self) -> None:
        await self._chancy.__aexit__(None, None, None)
