"""A folder, a URL of each store, and loggers that stay as they are."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Jobpipe

from ..support.sqlite_files import migrated_file
from ..support.waiting import run

Scenario = Callable[[Jobpipe], Awaitable[None]]
On = Callable[..., None]


@pytest.fixture(autouse=True)
def loggers_stay_as_they_are() -> Iterator[None]:
    """Why: setting up the logs of the service is for a whole process, and the next test may look for other lines."""
    names = ("", "httpx", "httpcore", "uvicorn.error", "rate_envelope_queue", "jobpipe")
    before = [(each := logging.getLogger(name), each.level, list(each.handlers)) for name in names]
    yield
    for each, level, handlers in before:
        each.setLevel(level)
        each.handlers[:] = handlers


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
def url(request: pytest.FixtureRequest, away_from_home: Path) -> str:
    if request.param == "memory":
        return "memory://"
    return f"sqlite:///{migrated_file(away_from_home / 'jobs.db')}"


@pytest.fixture
def on(url: str) -> On:
    """Run a scenario with a pipe on each store."""

    def on(scenario: Scenario, **settings: Any) -> None:
        async def main() -> None:
            async with Jobpipe(url, builtins=True, **settings) as pipe:
                await scenario(pipe)

        run(main())

    return on
