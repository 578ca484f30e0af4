"""A pipe on each store, a job from its start to its end, and what its handler has called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Job, Jobpipe, Retry

from ...support.jobs import finished
from ...support.waiting import run


@pytest.fixture
def pipe(url: str) -> Iterator[Jobpipe]:
    with closing(Jobpipe(url, queue_size=0, builtins=True)) as pipe:
        yield pipe


@pytest.fixture
def memory(away_from_home: Path) -> Jobpipe:
    """Where the store makes no difference."""
    return Jobpipe("memory://", queue_size=0)


def run_one(pipe: Jobpipe, type: str, payload: Any = None, **options: Any) -> Job:
    """Put a job in, run it, and return what became of it."""

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await pipe.enqueue(type, payload, **options)
            return await finished(pipe, receipt.id)

    return run(scenario())


def run_handler(pipe: Jobpipe, body: Callable[..., Any], **options: Any) -> Job:
    """Run a job whose handler is that, without retries."""
    pipe.job("order", max_retries=0, **options)(body)
    return run_one(pipe, "order")


class Calls(list[str]):
    """The functions that were called."""

    def note(self, name: str) -> str:
        self.append(name)
        return name


@pytest.fixture
def calls() -> Calls:
    return Calls()


def fails_once(calls: Calls) -> None:
    if "failed" not in calls:
        calls.append("failed")
        raise Retry(after=0)
