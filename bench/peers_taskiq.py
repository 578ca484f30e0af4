"""taskiq on a Redis stream, whose messages are acknowledged; no results, 100 tasks at once.

It has no way to enqueue many tasks but one by one, of which a hundred go at once. A stream keeps what was acknowledged:
outstanding is what its group was not given yet or has not acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis
from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from .queues import Work, beside

_AT_ONCE = 100


class TaskiqQueue:
    """A broker with one task."""

    def __init__(self, url: str) -> None:
        self._work: Work = lambda payload: None
        self._broker = RedisStreamBroker(url, queue_name="bench", consumer_id="0")

        @self._broker.task(task_name="work")  # type: ignore[untyped-decorator]
        async def run(payload: float) -> None:
            self._work(payload)

        self._task: Any = run

    async def open(self) -> None:
        await self._broker.startup()

    async def put(self, payload: float) -> object:
        return await self._task.kiq(payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        return [
            await asyncio.gather(*map(self._task.kiq, payloads[first : first + _AT_ONCE]))
            for first in range(0, len(payloads), _AT_ONCE)
        ]

    async def outstanding(self) -> int:
        client: Any = Redis(connection_pool=self._broker.connection_pool)
        [group] = await client.xinfo_groups("bench")
        last = group["last-delivered-id"].decode()
        undelivered = await client.xrevrange("bench", min=f"({last}", count=1)
        return int(group["pending"]) + len(undelivered)

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        self._work = work
        receiver = run_receiver_task(self._broker, max_async_tasks=_AT_ONCE, max_prefetch=_AT_ONCE)
        async with beside(receiver):
            yield

    async def close(self) -> None:
        await self._broker.shutdown()
