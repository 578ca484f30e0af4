"""How tests wait for jobs: the feed of the pipe tells when to look again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from jobpipe import Job, Jobpipe, JobStatus
from jobpipe.stores.base import News

from .waiting import LIMIT

T = TypeVar("T")


async def finished(pipe: Jobpipe, id: str) -> Job:
    """The job when it is finished."""
    job = await pipe.wait(id, LIMIT)
    assert job.is_finished, job
    return job


async def reached(pipe: Jobpipe, id: str, *statuses: JobStatus) -> Job:
    """The job as soon as it has one of the statuses."""
    return await seen(pipe, lambda: pipe.get(id), lambda job: job.status in statuses)


async def seen(pipe: Jobpipe, look: Callable[[], Awaitable[T]], is_it: Callable[[T], object]) -> T:
    """What a look finds, as soon as it is what is looked for; it looks again whenever something has changed."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    leave = pipe.feed.listen(News.CHANGES, lambda: loop.call_soon_threadsafe(changed.set))
    try:
        while not is_it(found := await look()):
            await changed.wait()
            changed.clear()
        return found
    finally:
        leave()
