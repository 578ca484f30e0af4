"""dramatiq on Redis at its best for no-op work: 32 threads, and no middleware, each of which would cost time a message.

It has no way to enqueue many messages but one by one. A message stays in a hash until it is acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dramatiq import Actor, Worker
from dramatiq.brokers.redis import RedisBroker

from .queues import Work

_THREADS = 32
_TIMEOUT = 1
"""Milliseconds between two looks at an empty queue, at the most: the default of 1,000 would be its pick-up latency."""


class DramatiqQueue:
    """A broker with one actor."""

    def __init__(self, url: str) -> None:
        self._broker = RedisBroker(url=url, middleware=[])
        self._actor = self._actor_of(lambda payload: None)

    def _actor_of(self, work: Work) -> Actor:
        self._broker.actors.clear()
        return Actor(work, broker=self._broker, actor_name="work", queue_name="bench", priority=0, options={})

    async def open(self) -> None:
        self._broker.declare_queue("bench")

    async def put(self, payload: float) -> object:
        return self._actor.send(payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        return [self._actor.send(payload) for payload in payloads]

    async def outstanding(self) -> int:
        return int(self._broker.client.hlen("dramatiq:bench.msgs"))

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        self._actor = self._actor_of(work)
        worker = Worker(self._broker, worker_timeout=_TIMEOUT, worker_threads=_THREADS)
        worker.start()
        try:
            yield
        finally:
            worker.stop()

    async def close(self) -> None:
        self._broker.close()
