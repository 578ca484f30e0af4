"""The job queues that are measured on a server, ours and the peers', behind one small interface.

What is put in is the instant of putting it, by the monotonic clock, which all processes of a machine share: so whoever runs
the jobs knows how long each took to be picked up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, Protocol, TypeVar

import uvloop

T = TypeVar("T")

Work = Callable[[float], object]
"""Called with the payload of each job, in the process that runs it."""

_UNTIL_IT_LISTENS = 0.5
"""Seconds that a worker may take to begin, if it does not tell when it has."""
_CLASSES = {
    "jobpipe": ("ours", "JobpipeQueue"),
    "jobpipe, logging": ("ours", "JobpipeQueue"),
    "jobpipe, waiting": ("ours", "WaitingJobpipeQueue"),
    "dramatiq": ("peers_dramatiq", "DramatiqQueue"),
    "huey (SQLite)": ("peers_sqlite", "HueyFileQueue"),
    "litequeue": ("peers_sqlite", "LitequeueQueue"),
    "huey": ("peers_huey_redis", "HueyRedisQueue"),
    "taskiq": ("peers_taskiq", "TaskiqQueue"),
    "pgqueuer": ("peers_pgqueuer", "PgqueuerQueue"),
    "chancy": ("peers_chancy", "ChancyQueue"),
    "procrastinate": ("peers_procrastinate", "ProcrastinateQueue"),
}


class Queue(Protocol):
    """A queue on one server, used from one process and on one event loop."""

    async def open(self) -> None:
        """Connect, and make what it needs on the server."""

    async def put(self, payload: float, /) -> object:
        """Put one job in."""

    async def put_many(self, payloads: Sequence[float], /) -> object:
        """Put jobs in, by the fastest way that the queue itself has for many."""

    async def outstanding(self) -> int:
        """How many jobs the server still shows to wait, to run, or to have run without being acknowledged."""

    def running(self, work: Work, /) -> AbstractAsyncContextManager[None]:
        """Run jobs in this process while the block lasts."""

    async def close(self) -> None:
        """Disconnect."""


def queue_of(kind: str, url: str) -> Queue:
    """Why not imported above: each process needs one of them, and `make bench` alone installs the peers."""
    module, name = _CLASSES[kind]
    made: Queue = getattr(import_module(f"bench.{module}"), name)(url)
    return made


def run(work: Coroutine[Any, Any, T]) -> T:
    """On the event loop that our workers have; it makes those of the peers that use one faster too."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@asynccontextmanager
async def beside(worker: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """Let a worker that ends only when it is cancelled work beside the block."""
    task = asyncio.create_task(worker)
    await asyncio.wait([task], timeout=_UNTIL_IT_LISTENS)
    if task.done():
        raise RuntimeError("a worker has ended at once: this measurement is void") from task.exception()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
