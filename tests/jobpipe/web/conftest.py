"""An application on a store, a client that talks to it, and a real server on a free port."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop

from jobpipe import Jobpipe
from jobpipe.web.app import WebApp, make_app
from jobpipe.web.serve import serve
from jobpipe.web.server.limits import Limits
from jobpipe.web.tally import Tally

from ...support.sqlite_files import migrated_file
from ...support.waiting import LIMIT
from . import connections

Scenario = Callable[["Caller"], Coroutine[Any, Any, None]]


class Caller:
    """A client of an application in this process."""

    def __init__(self, pipe: Jobpipe, app: WebApp, client: httpx.AsyncClient) -> None:
        self.pipe = pipe
        self.app = app
        self.client = client

    async def __call__(self, method: str, path: str, **options: Any) -> httpx.Response:
        return await self.client.request(method, path, **options)

    async def post(self, path: str, raw: bytes, **headers: str) -> httpx.Response:
        """Send bytes as they are."""
        given = {"content-type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return await self.client.post(path, content=raw, headers=given)

    async def refused(self, status: int, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The problem that a call comes to, after a look at its form."""
        return problem(await self(method, path, **options), status)


def problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = response.json()
    assert found["status"] == status
    assert found.keys() >= {"type", "title", "detail"}
    assert "Traceback" not in response.text
    return found


@contextlib.asynccontextmanager
async def calling(pipe: Jobpipe, *, service: Any = None, **client: Any) -> AsyncIterator[Caller]:
    app = make_app(pipe, service)
    transport = httpx.ASGITransport(app, client=client.pop("address", ("127.0.0.1", 1)))
    options: dict[str, Any] = {"base_url": "http://localhost:8080", "transport": transport} | client
    async with httpx.AsyncClient(**options) as http:
        try:
            yield Caller(pipe, app, http)
        finally:
            await asyncio.to_thread(pipe.close)


@pytest.fixture(autouse=True)
def away_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `.env` file and no database of the developer's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=["memory", "sqlite"])
def on_each_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Scenario], None]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{migrated_file(tmp_path / 'jobs.db')}"
    return lambda scenario: run(scenario, Jobpipe(url, builtins=True))


@pytest.fixture
def on_memory() -> Callable[[Scenario], None]:
    return lambda scenario: run(scenario, Jobpipe("memory://", builtins=True))


def run(scenario: Scenario, pipe: Jobpipe, **options: Any) -> None:
    async def main() -> None:
        async with calling(pipe, **options) as caller:
            await scenario(caller)

    asyncio.run(main())


class Server:
    """A real one; it stops when the block ends."""

    def __init__(self, pipe: Jobpipe, port: int, stop: asyncio.Event) -> None:
        self.pipe = pipe
        self.port = port
        self.stop = stop
        self.url = f"http://127.0.0.1:{port}"


@contextlib.asynccontextmanager
async def serving(pipe: Jobpipe, limits: Limits | None = None) -> AsyncIterator[Server]:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    stop, ready = asyncio.Event(), asyncio.Event()
    port = listener.getsockname()[1]
    task = asyncio.create_task(serve(pipe, [listener], stop, ready.set, limits=limits))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield Server(pipe, port, stop)
    finally:
        stop.set()
        await asyncio.wait_for(task, LIMIT)


@pytest.fixture(params=["uvloop", "asyncio"])
def loop_factory(request: pytest.FixtureRequest) -> Any:
    return uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop


@pytest.fixture(name="run")
def run_on_each_loop(loop_factory: Any) -> connections.Run:
    def run(
        scenario: connections.Scenario, limits: Limits = connections.LIMITS, tally: Tally | None = None
    ) -> None:
        async def main() -> None:
            async with asyncio.timeout(LIMIT), connections.world(limits, tally) as found:
                await scenario(found)

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(main())

    return run
