"""A worker with two slots and its children, one for all tests of a module: to start a child takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from jobpipe import Job, Jobpipe, Progress
from jobpipe.model.counts import ChildInfo
from jobpipe.worker.isolation.children import Children
from jobpipe.worker.runner import Runner

from ....support.jobs import finished
from ....support.waiting import LIMIT, until
from . import handlers

T = TypeVar("T")


def pipe_on(url: str, **settings: Any) -> Jobpipe:
    """A pipe with the handlers; its children import the module, and use its store."""
    pipe = handlers.declare(Jobpipe(url, queue_size=0, **settings))
    pipe.address = f"{handlers.__name__}:pipe"
    return pipe


class Lab:
    """A running worker. Its event loop runs while a scenario does."""

    def __init__(self, pipe: Jobpipe, runner: asyncio.Runner) -> None:
        self.pipe = pipe
        self._runner = runner

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """What it comes to."""
        return self._runner.run(asyncio.wait_for(scenario, LIMIT))

    def job(self, type: str, payload: Any = None, **options: Any) -> Job:
        """A job of the type when it is finished."""
        return self.run(self.finished(type, payload, **options))

    async def finished(self, type: str, payload: Any = None, **options: Any) -> Job:
        """The same, in a scenario."""
        return await finished(self.pipe, (await self.pipe.enqueue(type, payload, **options)).id)

    async def started(self, type: str, payload: Any = None, **options: Any) -> tuple[str, ChildInfo]:
        """A job whose handler has said so by its progress, and its child."""
        id = (await self.pipe.enqueue(type, payload, **options)).id
        await until(lambda: self.progress_of(id))
        return id, self.children[id]

    def progress_of(self, id: str) -> Progress | None:
        """What its run has told, if it is under way."""
        return next((run.progress for run in self.worker.held.all() if run.claim.id == id), None)

    @property
    def children(self) -> dict[str, ChildInfo]:
        """Those that run a job, by its id."""
        return self.worker.info().children

    @property
    def worker(self) -> Runner:
        """What runs the jobs."""
        return runner_of(self.pipe)


def runner_of(pipe: Jobpipe) -> Runner:
    """What runs its jobs."""
    assert pipe.service is not None
    assert pipe.service.runner is not None
    return pipe.service.runner


def children_of(lab: Lab) -> Children:
    """All of them."""
    assert lab.worker._children is not None
    return lab.worker._children


@contextmanager
def working(pipe: Jobpipe, workers: int = 2) -> Iterator[Lab]:
    """A lab with that pipe."""
    with asyncio.Runner() as runner:
        service = pipe.make_service(workers=workers)
        runner.run(service.start())
        leave = pipe.feed.subscribe(lambda _: None)  # Why: its thread is there before that of a test would be
        try:
            yield Lab(pipe, runner)
        finally:
            leave()
            runner.run(service.stop(grace=0))
            pipe.close()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with working(pipe_on("memory://", lease=5)) as lab:
        yield lab
