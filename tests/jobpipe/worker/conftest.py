"""A pipe on each store, and a job from its start to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    Job,
    Jobpipe,
)

from ...support.jobs import finished
from ...support.waiting import run


@pytest.fixture
def pipe(url: str) -> Jobpipe:
    return Jobpipe(url, queue_size=0, builtins=True)


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
