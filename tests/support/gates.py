"""Where a handler stops until the test lets it go on: one gate for threads, one for coroutines."""

from __future__ import annotations

import asyncio
import threading

from .waiting import LIMIT


class Gate:
    """A place where a handler stops until the test opens it, and says that it has come."""

    def __init__(self) -> None:
        self._reached = threading.Semaphore(0)
        self._opened = threading.Semaphore(0)

    def pass_through(self, *_: object) -> None:
        self._reached.release()
        assert self._opened.acquire(timeout=LIMIT), "the gate was not opened"

    def wait_reached(self) -> None:
        assert self._reached.acquire(timeout=LIMIT), "nobody came to the gate"

    def open(self, times: int = 1) -> None:
        for _ in range(times):
            self._opened.release()


class AsyncGate:
    """Where an async handler waits until the test lets it go on."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    async def pass_through(self) -> None:
        self.began.set()
        await self.go.wait()
