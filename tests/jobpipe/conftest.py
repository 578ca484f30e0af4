"""A pipe on each store, and what tests wait with: an event, a status, never a while."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from jobpipe import Job, Jobpipe, JobStatus
from jobpipe.stores.base import News

from ..support.waiting import LIMIT

T = TypeVar("T")


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run it on an event loop of its own."""
    return asyncio.run(asyncio.wait_for(scenario, LIMIT))


async def finished(pipe: Jobpipe, id: str) -> Job:
    """The job when it is finished."""
    job = await pipe.wait(id, LIMIT)
    assert job.is_finished, job
    return job


async def until(pipe: Jobpipe, id: str, *statuses: JobStatus) -> Job:
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


@pytest.fixture(autouse=True)
def loggers_stay_as_they_are() -> Iterator[None]:
    """Why: setting up the logs of the service is for a whole process, and the next test may look for other lines."""
    names = ("", "httpx", "httpcore", "uvicorn.error", "rate_envelope_queue", "jobpipe")
    before = [(each := logging.getLogger(name), each.level, list(each.handlers)) for name in names]
    yield
    for each, level, handlers in before:
        each.setLevel(level)
        each.handlers[:] = handlers


class Gate:
    """Where an async handler waits until the test lets it go on."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go = asyncio.Event()

    async def pass_through(self) -> None:
        self.began.set()
        await self.go.wait()


@pytest.fixture
def away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a `.env` file and a database of the developer's own, and none of their settings."""
    for name in ("WORKERS", "QUEUE_SIZE", "JOBPIPE_STORE", "JOBPIPE_LEASE", "JOBPIPE_GRACE", "JOBPIPE_KEEP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sqlite_url(away_from_home: Path) -> str:
    return f"sqlite:///{away_from_home}/jobs.db"


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    return "memory://" if request.param == "memory" else sqlite_url
