"""Block: what stands in for a pipe's store and clock from the begin of `with pipe.testing()` to its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, TypeVar

from ...app import Jobpipe
from ...gateway.async_store import AsyncStore
from ...gateway.feed import Feed
from ...gateway.known_types import KnownTypes
from ...gateway.lazy_store import Gateway, LazyStore, Substitute, entered
from ...jobtypes.current import CurrentJob
from ...jobtypes.jobtype import JobType
from ...model.durable import SignalReceipt
from ...model.newjob import NewJob
from ...worker.capture import Captures
from .clock import BlockClock
from .direct import current_of
from .inline import Inline, InlineLoop
from .session import Session
from .store import BlockStore

T = TypeVar("T")

_driving: ContextVar[tuple[Block, ...]] = ContextVar("jobpipe.driving", default=())
"""In which blocks the caller is a handler that they run."""


class Block:
    """The store, the clock and the sessions of one block."""

    def __init__(
        self,
        pipe: Jobpipe,
        lazy_store: LazyStore,
        known: KnownTypes,
        *,
        start: datetime | None,
        workers: int,
    ) -> None:
        self.pipe = pipe
        self._workers = workers
        self.clock = BlockClock(start)
        self.store = BlockStore(self.clock.now, pipe.signals.notify_work)
        self.is_open = True
        self.ran: dict[str, None] = {}
        """The ids of the jobs that were begun and not told of yet, in order."""
        self._session: Session | None = None  # one is kept while jobs wait for the clock
        self._inline_loop = InlineLoop()
        self._lock = threading.Lock()  # one drives at a time
        self._undo = ExitStack()
        with ExitStack() as undo:
            was_in_use: set[str] = {name for name in _CACHED if name in pipe.__dict__}
            undo.callback(_forget_settings, pipe, was_in_use)
            captures = Captures(pipe.settings.job_logs)  # SettingsError, as with the real store
            undo.callback(captures.stop)
            self.gateway = self.gateway_of(self.store)
            undo.callback(self.gateway.feed.close)
            undo.callback(known.forget)
            self._substitute = Substitute(self.gateway, self._current)
            undo.callback(lazy_store.put_in_place(self._substitute))
            known.forget()
            pipe.schedules.register(self.store)
            captures.start()
            self._undo = undo.pop_all()

    def gateway_of(self, store: Any) -> Gateway:
        """The ways to a store."""
        return Gateway(
            store, AsyncStore(store, self.pipe.capacity, self.pipe.signals.notify_work), Feed(store)
        )

    def close(self) -> None:
        """Let the pipe be as it was."""
        if self.is_open:
            self.is_open = False
            if self._session is not None:
                self._session.abandon()
            self._inline_loop.close()
            self._undo.close()

    async def close_async(self) -> None:
        """`close` on the event loop on which jobs may wait for the clock."""
        session = self._session
        if session is not None and session.loop is asyncio.get_running_loop():
            self._session = None
            await session.end()
        self.close()

    # Running jobs

    async def drive(self, by: float, inline: Inline | None = None) -> None:
        """Run all that is due, and what comes due while the clock moves."""
        async with self.alone():
            session = self._session or self.session(inline=inline)
            if session is not self._session:
                await session.start()
            elif session.loop is not asyncio.get_running_loop():
                raise RuntimeError("a job waits for the clock on another event loop: go on there")
            self._session = session
            try:
                await session.drive(by)
            finally:
                if not session.runner.held.all():
                    self._session = None
                    await session.end()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Run jobs while nobody else does."""
        self.check()
        # Why no asyncio.Lock: another thread may drive, with a loop of its own.
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        outer = _driving.get()
        _driving.set((*outer, self))
        try:
            with entered(self._substitute):  # handlers enqueue here, also while an inner block is open
                yield
        finally:
            _driving.set(outer)
            self._lock.release()

    def check(self) -> None:
        """RuntimeError unless jobs can be run."""
        self.check_open()
        if self in _driving.get():
            raise RuntimeError("a handler cannot run jobs of the block that runs it: enqueue them")

    def check_open(self) -> None:
        """RuntimeError after its end."""
        if not self.is_open:
            raise RuntimeError("the block of pipe.testing() has ended: run jobs within it")

    def session(
        self,
        store: Any = None,
        types: Mapping[str, JobType[..., Any]] | None = None,
        inline: Inline | None = None,
    ) -> Session:
        """A new one, to be started and ended; for some types only, or with another way to the store."""
        return Session(
            self.pipe,
            self.gateway if store is None else self.gateway_of(store),
            self.store,
            self.clock,
            workers=self._workers,
            claimed=self.ran,
            types=types,
            inline=inline,
        )

    def run_inline(self, make: Callable[[Inline], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine that drives in this thread, with or without an event loop."""
        self.check()
        return self._inline_loop.run(make)

    def insert(self, job: NewJob) -> None:
        """Enqueue a job that is prepared."""
        (answer,) = self.store.insert([[job]])
        if not isinstance(answer, list):
            raise answer

    async def signal(self, id: str, name: str, payload: Any) -> SignalReceipt:
        """`pipe.signal` to a job of this block."""
        self.check_open()
        with entered(self._substitute):
            return await self.pipe.signal(id, name, payload)

    def _current(self, type: str) -> CurrentJob:
        """What a handler sees that is called directly."""
        return current_of(self.pipe.types[type], self.clock, self.gateway_of, self.pipe.settings.max_payload)


_CACHED = "settings", "capacity", "tracing"
"""What a pipe makes of its settings, once."""


def _forget_settings(pipe: Jobpipe, kept: set[str]) -> None:
    """Why: a pipe whose settings were read cannot be configured any more."""
    for name in _CACHED:
        if name not in kept:
            pipe.__dict__.pop(name, None)
