"""AsyncStore: calls a store's verbs for an event loop, and groups concurrent inserts into one.

A store that blocks is called in threads. While one insert is under way, those that come meanwhile wait and
go together with the next: so many concurrent enqueues share one transaction, and each is answered only
after it is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from itertools import takewhile
from typing import ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from ..failpoints import reach
from ..model.admission import Bounds
from ..model.newjob import Answer, NewJob, Receipt
from ..stores.base import Store
from ..stores.guests import lent_connections
from .sync import is_sync

P = ParamSpec("P")
T = TypeVar("T")

_THREADS = 8
_MOST_TOGETHER = 1_000
"""Batches in one insert."""


class _Group:
    """The inserts of one event loop that wait for their turn."""

    __slots__ = ("task", "waiting")

    def __init__(self) -> None:
        self.waiting: list[tuple[Sequence[NewJob], Bounds, asyncio.Future[Answer]]] = []
        self.task: asyncio.Task[None] | None = None

    def take(self) -> tuple[list[tuple[Sequence[NewJob], Bounds, asyncio.Future[Answer]]], Bounds]:
        """The next ones that are held to the same bounds, and these."""
        bounds = self.waiting[0][1]
        taken = list(takewhile(lambda each: each[1] == bounds, self.waiting[:_MOST_TOGETHER]))
        self.waiting = self.waiting[len(taken) :]
        return taken, bounds


class AsyncStore:
    """One store behind `await`."""

    def __init__(self, store: Store, capacity: int, on_insert: Callable[[], object] = lambda: None) -> None:
        self._store = store
        self._bounds = Bounds(capacity)
        """For those who have none of their own."""
        self._on_insert = on_insert
        """Told, in the thread that inserts, that there is something new: before who asked for it is answered."""
        self._threads = ThreadPoolExecutor(_THREADS, "jobpipe-store") if store.capabilities.blocking else None
        self._groups: WeakKeyDictionary[asyncio.AbstractEventLoop, _Group] = WeakKeyDictionary()

    async def call(self, verb: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a verb of the store."""
        if self._threads is None or is_sync():
            return verb(*args, **kwargs)
        work = partial(verb, *args, **kwargs)
        if lent_connections():  # the store asks for them, in whichever thread
            work = partial(copy_context().run, work)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def insert(self, batch: Sequence[NewJob], bounds: Bounds | None = None) -> Answer:
        """Insert a batch, together with others that come at the same time."""
        bounds = self._bounds if bounds is None else bounds
        if self._threads is None or is_sync():
            return self.insert_now([batch], bounds)[0]
        if any(job.unique is not None for job in batch) or lent_connections():
            # Why alone: it may have to wait for a transaction that has taken the name, or be refused for its caller's own.
            return (await self.call(self.insert_now, [batch], bounds))[0]
        loop = asyncio.get_running_loop()
        group = self._groups.get(loop)
        if group is None:
            group = self._groups[loop] = _Group()
        answer: asyncio.Future[Answer] = loop.create_future()
        group.waiting.append((batch, bounds, answer))
        if group.task is None:
            # Why in a context of its own: the inserts are those of many callers.
            group.task = loop.create_task(self._insert_groups(group), context=Context())
        return await answer

    async def _insert_groups(self, group: _Group) -> None:
        """Insert all that waits, group by group, until nothing does."""
        try:
            while group.waiting:
                load, bounds = group.take()
                try:
                    answers = await self.call(self.insert_now, [batch for batch, *_ in load], bounds)
                except Exception as error:
                    for *_, future in load:
                        if not future.done():
                            future.set_exception(error)
                else:
                    for (*_, future), answer in zip(load, answers, strict=True):
                        if not future.done():  # who asked may have gone
                            future.set_result(answer)
        finally:
            group.task = None
            for *_, future in group.waiting:
                future.cancel()  # only where the loop itself ends

    def insert_now(self, batches: Sequence[Sequence[NewJob]], bounds: Bounds | None = None) -> list[Answer]:
        """Insert batches from this very thread."""
        ready, scheduled, names = self._bounds if bounds is None else bounds
        reach("enqueue-before")
        answers = self._store.insert(batches, capacity=ready, scheduled=scheduled, names=names)
        reach("enqueue-after")
        self._on_insert()
        return answers

    def close(self) -> None:
        """Wait for calls under way, and take no more."""
        if self._threads is not None:
            self._threads.shutdown()


def unwrap(answer: Answer) -> list[Receipt]:
    """The receipts; raises what stands in their place."""
    if isinstance(answer, list):
        return answer
    raise answer
