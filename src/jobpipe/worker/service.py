"""Service: a pipe at work. It starts and stops what runs jobs in this process: runner, keeper, feed.

The web application and the worker command are built on it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from ..errors import StoreAwayError
from .heartbeat import Keeper
from .meters import Meters
from .runner import Runner

if TYPE_CHECKING:
    from ..app import Jobpipe

logger = logging.getLogger("jobpipe")

_LOOK_AGAIN = 1.0
"""Seconds between two attempts to reach a store that is away at the start."""


async def ask_store(pipe: Jobpipe) -> None:
    """StoreError unless the store answers; what is asked costs it next to nothing."""
    await pipe.courier.call(pipe.store.get, "?")  # no job is called that


class Service:
    """What runs in a process, as one thing with a start and a stop."""

    def __init__(self, pipe: Jobpipe, *, workers: int | None = None) -> None:
        self.pipe = pipe
        self.meters = Meters()
        self.is_stopping = False
        """Does it take no more jobs?"""
        self.is_started = False
        self.is_ended = False
        self._has_store = True  # as far as the last probe knew
        self._slots = workers
        self.runner: Runner | None = None
        self._keeper: Keeper | None = None

    async def start(self) -> None:
        """Open the store and begin to run jobs."""
        other = self.pipe.service
        if other is not None and other is not self and not other.is_ended:
            raise RuntimeError(
                "this pipe runs jobs in this process already: one `pipe.running()` at a time, on one event loop"
            )
        self.pipe.service = self
        try:
            await self._start()
        except BaseException:
            self.pipe.service = None
            raise
        self.is_started = True

    async def _start(self) -> None:
        settings = self.pipe.settings
        slots = settings.workers if self._slots is None else self._slots
        await asyncio.to_thread(lambda: self.pipe.schedules.register(self.pipe.store))
        if slots:
            self.runner = Runner(self.pipe, self.meters, slots)
            await self.runner.start()
        self._keeper = Keeper(self.pipe, self.runner)
        self._keeper.start()

    async def start_when_possible(self, stop: asyncio.Event) -> bool:
        """Start as soon as the store is there; False if the stop came before."""
        is_away = False
        while not stop.is_set():
            try:
                await self.start()
            except StoreAwayError as error:
                if not is_away:
                    logger.warning("the store is away, and waited for: %s", error)
                is_away = True
            else:
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN):
                    await stop.wait()
        return False

    async def is_ready(self) -> bool:
        """Started, not stopping, and the store answers?"""
        if not self.is_started or self.is_stopping:
            return False
        try:
            await ask_store(self.pipe)
        except Exception as error:
            if self._has_store:  # Why once: probes come every second
                logger.warning("not ready: %s", error)
            self._has_store = False
            return False
        if not self._has_store:
            logger.info("ready again: the store answers")
        self._has_store = True
        return True

    def begin_stop(self) -> None:
        """Take no more jobs from now on; `stop` does the rest."""
        self.is_stopping = True

    async def stop(self, grace: float | None = None) -> None:
        """Let running jobs end within the grace, give the rest back, and let go of the store."""
        self.begin_stop()
        try:
            if self.runner is not None:
                await self.runner.stop(self.pipe.settings.grace if grace is None else grace)
            if self._keeper is not None:
                await asyncio.to_thread(self._keeper.stop)
        finally:
            self.is_ended = True

    async def close(self) -> None:
        """Let go of the store: after the last read."""
        await asyncio.to_thread(self.pipe.close)
