"""huey on Redis at its best for no-op work: threads that wait in a blocking pop, and no results.

It has no way to enqueue many tasks but one by one. A task is deleted when it is taken: there is nothing to
acknowledge, and nothing to rescue either.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from huey import RedisHuey

from .peers_huey import QuietConsumer
from .queues import Work

_THREADS = 1
"""As on SQLite, where more of them are slower: the interpreter lets one run at a time."""


class HueyRedisQueue:
    """A huey with one task."""

    def __init__(self, url: str) -> None:
        self._work: Work = lambda payload: None
        self._huey = RedisHuey("bench", url=url, results=False)
        self._task = self._huey.task(name="work")(self._run)

    def _run(self, payload: float) -> None:
        self._work(payload)

    async def open(self) -> None:
        self._huey.storage.conn.ping()

    async def put(self, payload: float) -> object:
        return self._task(payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        return [self._task(payload) for payload in payloads]

    async def outstanding(self) -> int:
        return int(self._huey.storage.queue_size())

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        self._work = work
        consumer = QuietConsumer(self._huey, workers=_THREADS, periodic=False, scheduler_interval=60)
        consumer.start()
        try:
            yield
        finally:
            await asyncio.to_thread(consumer.stop, graceful=True)

    async def close(self) -> None:
        self._huey.storage.close()
