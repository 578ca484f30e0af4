"""How tests lead jobs to a status, and wait for them: the feed of the pipe tells when to look again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from jobpipe import Job, Jobpipe, JobStatus
from jobpipe.model.job import Move
from jobpipe.stores.base import News
from jobpipe.testing.tools import BOOM, finish, take

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


async def lead_to(pipe: Jobpipe, status: JobStatus, id: str | None = None, **options: Any) -> str:
    """Put a job in and lead it to that status, as a worker would."""
    id = id or status.value
    delay = 3600 if status is JobStatus.SCHEDULED else None
    expires_in = 0 if status is JobStatus.EXPIRED else None
    await pipe.enqueue("echo", id, id=id, delay=delay, expires_in=expires_in, **options)
    if status is JobStatus.CANCELLED:
        await pipe.cancel(id)
    elif status not in (JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.EXPIRED):
        (claim,) = take(pipe.store, types=["echo"])
        assert claim.id == id
        if status is JobStatus.DONE:
            finish(pipe.store, claim, result="fine")
        elif status is JobStatus.FAILED:
            finish(pipe.store, claim, Move.FAIL, error=BOOM)
        elif status is JobStatus.WAITING:
            finish(pipe.store, claim, Move.WAIT, name="go", delay=3600)
    assert (await pipe.get(id)).status is status
    return id


async def one_of_each(pipe: Jobpipe) -> None:
    others = [status for status in reversed(JobStatus) if status is not JobStatus.QUEUED]
    for status in (*others, JobStatus.QUEUED):  # Why last: it must not be in the way of a claim
        await lead_to(pipe, status)
