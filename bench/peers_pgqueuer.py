"""pgqueuer on PostgreSQL at its best for no-op work: asyncpg, batches of 1,000. A job is deleted when it is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
from pgqueuer import AsyncpgDriver, Queries, QueueManager

from .queues import Work, beside

_BATCH = 1_000


class PgqueuerQueue:
    """Its queries, and a queue manager with one entrypoint."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> None:
        self._connection = await asyncpg.connect(self._url)
        self._queries = Queries(AsyncpgDriver(self._connection))
        if not await self._queries.schema_is_installed():
            await self._queries.install()

    async def put(self, payload: float) -> object:
        return await self._queries.enqueue("work", b"%r" % payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        n = len(payloads)
        return await self._queries.enqueue(["work"] * n, [b"%r" % payload for payload in payloads], [0] * n)

    async def outstanding(self) -> int:
        return int(await self._connection.fetchval("SELECT count(*) FROM pgqueuer"))

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        connection = await asyncpg.connect(self._url)
        manager = QueueManager(Queries(AsyncpgDriver(connection)))

        @manager.entrypoint("work")  # type: ignore[untyped-decorator]
        async def run(job: Any) -> None:
            work(float(job.payload))

        async with beside(manager.run(batch_size=_BATCH)):
            yield
        await connection.close()

    async def close(self) -> None:
        await self._connection.close()
