"""huey and litequeue on a SQLite file, behind the interface of `queues`; see `sqlite` for how each is set."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import sleep

from litequeue import LiteQueue

from .peers_huey import HueyQueue
from .queues import Work

_POLL = 0.001


def _path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


class HueyFileQueue:
    """A huey with one task."""

    def __init__(self, url: str) -> None:
        self._work: Work = lambda payload: None
        self._queue = HueyQueue(_path(url), lambda payload: self._work(payload))

    async def open(self) -> None:
        """The file was opened when this was made."""

    async def put(self, payload: float) -> object:
        return self._queue.put(payload)

    async def put_many(self, payloads: Sequence[float]) -> object:
        self._queue.put_many(payloads)
        return None

    async def outstanding(self) -> int:
        return self._queue.waiting

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        self._work = work
        with self._queue.running():
            yield

    async def close(self) -> None:
        self._queue.close()


class LitequeueQueue:
    """A litequeue, and a thread that pops and marks as done, one by one."""

    def __init__(self, url: str) -> None:
        self._path = _path(url)
        self._queue = LiteQueue(self._path)

    async def open(self) -> None:
        """The file was opened when this was made."""

    async def put(self, payload: float) -> object:
        return self._queue.put(repr(payload))

    async def put_many(self, payloads: Sequence[float]) -> object:
        with self._queue.transaction():
            return [self._queue.put(repr(payload)) for payload in payloads]

    async def outstanding(self) -> int:
        return int(self._queue.qsize())

    @asynccontextmanager
    async def running(self, work: Work) -> AsyncIterator[None]:
        is_over = threading.Event()

        def drain() -> None:
            queue = LiteQueue(self._path)
            while not is_over.is_set():
                message = queue.pop()
                if message is None:
                    sleep(_POLL)
                    continue
                work(float(message.data))
                queue.done(message.message_id)
            queue.close()

        thread = threading.Thread(target=drain, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            await asyncio.to_thread(thread.join)

    async def close(self) -> None:
        self._queue.close()
