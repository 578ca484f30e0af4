"""The API inside somebody else's application: mounted under a prefix, with or without workers in the process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from jobpipe import Jobpipe
from jobpipe.web.asgi import path_of, root_of
from jobpipe.web.auth import Guard
from jobpipe.web.problems import ForeignCallerError

from ...support.gates import AsyncGate
from ...support.waiting import run, until
from .conftest import problem

PROBES = ("/health", "/livez", "/readyz")


@pytest.fixture(params=["memory", "sqlite"])
def pipe(request: pytest.FixtureRequest, tmp_path: Path) -> Jobpipe:
    return Jobpipe("memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/jobs.db")


def in_starlette(pipe: Jobpipe, **options: Any) -> ASGIApp:
    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with pipe, pipe.running():
            yield

    return Starlette(routes=[Mount("/queue/v1", app=pipe.asgi(**options))], lifespan=lifespan)


def in_fastapi(pipe: Jobpipe, **options: Any) -> ASGIApp:
    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with pipe, pipe.running():
            yield

    app = FastAPI(lifespan=lifespan)
    app.mount("/queue/v1", pipe.asgi(**options))
    return app


def nested(pipe: Jobpipe, **options: Any) -> ASGIApp:
    return Starlette(routes=[Mount("/queue", routes=[Mount("/v1", app=pipe.asgi(**options))])])


def cut_off(pipe: Jobpipe, **options: Any) -> ASGIApp:
    """By a framework that takes the prefix off the path, as some do."""
    inner = pipe.asgi(**options)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await inner(
            {**scope, "root_path": "/queue/v1", "path": scope["path"].removeprefix("/queue/v1")},
            receive,
            send,
        )

    return app


def client_of(app: ASGIApp, address: str | None = "127.0.0.1", **options: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1) if address else None)  # type: ignore[arg-type]
    options = {"base_url": "http://localhost/queue/v1/"} | options
    return httpx.AsyncClient(transport=transport, **options)


@contextlib.asynccontextmanager
async def lasting(app: ASGIApp) -> AsyncIterator[None]:
    """A server's part of the protocol of lifespans."""
    inbox: asyncio.Queue[Any] = asyncio.Queue()
    outbox: asyncio.Queue[Any] = asyncio.Queue()
    scope = {"type": "lifespan", "asgi": {"version": "3.0"}}
    task = asyncio.ensure_future(app(scope, inbox.get, outbox.put))
    inbox.put_nowait({"type": "lifespan.startup"})
    told = await outbox.get()
    assert told["type"] == "lifespan.startup.complete", told
    try:
        yield
    finally:
        inbox.put_nowait({"type": "lifespan.shutdown"})
        told = await outbox.get()
        assert told["type"] == "lifespan.shutdown.complete", told
        await task


@pytest.mark.parametrize("mount", [in_starlette, in_fastapi, nested, cut_off])
def test_everything_is_found_below_the_prefix(
    pipe: Jobpipe, mount: Callable[..., ASGIApp], caplog: pytest.LogCaptureFixture
) -> None:
    """Without a lifespan and so without workers: an API only."""

    async def main() -> None:
        async with pipe, client_of(mount(pipe)) as call:
            for path in PROBES:
                assert (await call.get(path)).json() == {"status": "ok"}
            accepted = await call.post("/enqueue", json={"id": "a", "payload": 1})
            assert (accepted.status_code, accepted.json()) == (202, {"id": "a", "status": "queued"})
            assert (await call.post("/enqueue", json={"id": "a", "payload": 1})).json()["payload"] == 1
            assert (await call.post("/enqueue/batch", json={"jobs": [{"id": "b"}]})).status_code == 202
            assert (await call.get("/jobs/a")).json()["status"] == "queued"
            assert (await call.get("/jobs/a/explain")).json()["reason"] == "no_worker"
            assert (await call.get("/jobs/a/wait", params={"timeout": 0})).json()["id"] == "a"
            assert (await call.post("/jobs/a/cancel")).json()["status"] == "cancelled"
            assert (await call.get("/stats")).json()["queued"] == 1
            assert 'jobpipe_jobs{queue="default",status="queued"} 1.0' in (await call.get("/metrics")).text
            missing = problem(await call.get("/nope"), 404)
            assert "/queue/v1/openapi.json" in missing["detail"]
            refused = await call.get("/enqueue")
            problem(refused, 405)
            assert refused.headers["allow"] == "POST"
            document = (await call.get("/openapi.json")).json()
            assert document["servers"] == [{"url": "/queue/v1"}]
            assert "/jobs/{id}" in document["paths"]

    run(main())
    assert caplog.records == []


def test_a_document_that_is_not_mounted_names_the_root_of_its_server() -> None:
    async def main() -> None:
        async with Jobpipe("memory://") as pipe, client_of(pipe.asgi(), base_url="http://localhost") as call:
            assert (await call.get("/openapi.json")).json()["servers"] == [{"url": "/"}]

    run(main())


@pytest.mark.parametrize(
    ("root", "path", "below"),
    [
        ("", "/jobs", "/jobs"),
        ("/jobs", "/jobs/jobs/a", "/jobs/a"),
        ("/jobs", "/enqueue", "/enqueue"),
        ("/job", "/jobs", "/jobs"),
        ("/jobs", "/jobs", ""),
    ],
)
def test_the_prefix_is_taken_off_once_and_whole(root: str, path: str, below: str) -> None:
    assert path_of({"root_path": root, "path": path}) == below
    assert path_of({"path": path}) == path
    assert root_of({"root_path": root}) == root


@pytest.mark.parametrize("mount", [in_starlette, in_fastapi])
def test_workers_run_with_the_lifespan_of_the_outer_application(
    pipe: Jobpipe, mount: Callable[..., ASGIApp]
) -> None:
    """The mounted API is ready with them, measures what they do, and refuses jobs once they stop."""
    gate = AsyncGate()

    @pipe.job
    async def work() -> str:
        await gate.pass_through()
        return "worked"

    async def main() -> None:
        app = mount(pipe)
        async with client_of(app) as call:
            stop = asyncio.Event()
            lived = asyncio.create_task(_live(app, stop))
            await call.post("/enqueue", json={"id": "a", "type": "work"})
            await gate.began.wait()
            assert (await call.get("/readyz")).status_code == 200
            assert 'workqueue_adds_total{name="jobpipe"} 1.0' in (await call.get("/metrics")).text
            stop.set()
            while not (pipe.service is not None and pipe.service.is_stopping):
                await asyncio.sleep(0)
            assert "stopping" in problem(await call.get("/readyz"), 503)["detail"]
            assert problem(await call.post("/enqueue", json={}), 503)["type"].endswith("stopping")
            assert (await call.get("/jobs/a")).json()["status"] == "running"
            gate.go.set()
            await lived
            assert problem(await call.post("/enqueue", json={}), 503)["type"].endswith("stopping")

    async def _live(app: ASGIApp, stop: asyncio.Event) -> None:
        async with lasting(app):
            await stop.wait()

    run(main())


def test_metrics_are_those_of_the_workers_that_run_now() -> None:
    """Also after they were stopped and others started."""
    pipe = Jobpipe("memory://")

    async def main() -> None:
        async with pipe, client_of(pipe.asgi(), base_url="http://localhost") as call:
            assert "workqueue_" not in (await call.get("/metrics")).text
            for _ in range(2):
                async with pipe.running():
                    await pipe.wait((await pipe.enqueue("echo")).id)
                    text = (await call.get("/metrics")).text
                    assert 'jobpipe_run_seconds_count{type="echo"} 1.0' in text
                    assert 'workqueue_adds_total{name="jobpipe"} 1.0' in text

    run(main())


def test_it_is_an_application_of_its_own_too(pipe: Jobpipe) -> None:
    """`uvicorn app:application`: its own lifespan runs the workers."""

    async def main() -> None:
        app = pipe.asgi()
        async with lasting(app), client_of(app, base_url="http://localhost") as call:
            await call.post("/enqueue", json={"id": "a", "payload": 5})
            assert (await call.get("/jobs/a/wait")).json()["result"] == 5
        assert pipe.service is not None
        assert pipe.service.is_ended

    run(main())


def test_it_is_served_by_uvicorn_under_a_root_path(pipe: Jobpipe) -> None:
    """Behind a proxy that takes a prefix off: uvicorn puts it back."""

    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(pipe.asgi(), root_path="/queue", log_config=None)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve([listener]))
        async with httpx.AsyncClient(
            verify=False, base_url=f"http://127.0.0.1:{listener.getsockname()[1]}"
        ) as call:
            await call.post("/enqueue", json={"id": "a", "payload": 5})
            assert (await call.get("/jobs/a/wait")).json()["result"] == 5
            assert (await call.get("/openapi.json")).json()["servers"] == [{"url": "/queue"}]
        server.should_exit = True
        await serving

    run(main())


def test_calls_that_take_long_do_not_hold_up_the_stop_for_longer_than_the_server_allows(
    pipe: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    """uvicorn cancels them then: they end as they should. The workers are stopped after that."""

    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(in_starlette(pipe), log_config=None, timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server._serve([listener]))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/queue/v1"
        async with (
            httpx.AsyncClient(verify=False, base_url=url) as client,
            client.stream("GET", "/events") as stream,
        ):
            lines = stream.aiter_lines()
            assert await anext(lines) == ": connected"
            await client.post("/enqueue", json={"id": "later", "delay": 600})
            waiting = asyncio.create_task(client.get("/jobs/later/wait?timeout=300"))
            await until(lambda: len(pipe.feed._on_events) >= 2)
            server.should_exit = True
            await serving
            assert [line async for line in lines if line][3:] == []
            assert (await waiting).json()["status"] == "scheduled"
        assert pipe.service is not None
        assert pipe.service.is_ended
        assert [record for record in caplog.records if record.exc_info] == []

    run(main())


def test_several_mounts_are_doors_to_one_pipe() -> None:
    """The same application under two prefixes, and one more beside it."""
    pipe = Jobpipe("memory://")

    async def main() -> None:
        one = pipe.asgi()
        outer = Starlette(routes=[Mount("/a", app=one), Mount("/b", app=one), Mount("/c", app=pipe.asgi())])
        async with pipe, pipe.running(), client_of(outer, base_url="http://localhost") as call:
            await call.post("/a/enqueue", json={"id": "x", "payload": 5})
            for prefix in "abc":
                assert (await call.get(f"/{prefix}/jobs/x/wait")).json()["result"] == 5
                assert (await call.get(f"/{prefix}/openapi.json")).json()["servers"] == [
                    {"url": f"/{prefix}"}
                ]

    run(main())


# What cannot be


def test_a_pipe_is_run_once_at_a_time(pipe: Jobpipe) -> None:
    """And again after it was stopped, or could not be started."""

    async def main() -> None:
        async with pipe:
            async with pipe.running():
                with pytest.raises(RuntimeError, match="already runs jobs in this process"):
                    async with pipe.running():
                        pass
                with pytest.raises(RuntimeError, match="already"):
                    await pipe.make_service().start()
                await pipe.wait((await pipe.enqueue("echo", id="a")).id)
            async with pipe.running():
                await pipe.wait((await pipe.enqueue("echo", id="b")).id)

    run(main())


def test_one_that_could_not_start_leaves_the_pipe_free(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_bytes(b"this is no database " * 99)
    pipe = Jobpipe(f"sqlite:///{tmp_path}/jobs.db")

    async def main() -> None:
        with pytest.raises(Exception, match="no SQLite file"):
            async with pipe.running():
                pass
        assert pipe.service is None
        (tmp_path / "jobs.db").unlink()
        async with pipe, pipe.running():
            assert (await pipe.wait((await pipe.enqueue("echo", 1)).id)).result == 1

    run(main())


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, call: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(20)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def test_short_calls_come_from_any_loop_and_long_ones_from_one(
    pipe: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says what is wrong; once the one loop has ended, another may have them."""
    app = pipe.asgi()

    async def call(method: str, path: str, **options: Any) -> httpx.Response:
        async with client_of(app, base_url="http://localhost") as client:
            return await client.request(method, path, **options)

    one, two = Loop(), Loop()
    try:
        assert one.run(call("POST", "/enqueue", json={"id": "a", "delay": 60})).status_code == 202
        assert two.run(call("POST", "/enqueue", json={"id": "b", "delay": 60})).status_code == 202
        assert one.run(call("GET", "/jobs/a/wait?timeout=0")).status_code == 200
        for path in ("/jobs/a/wait?timeout=0", "/events"):
            problem(two.run(call("GET", path)), 500)
            assert "already used by another event loop" in str(caplog.records[-1].exc_info)
    finally:
        one.close()
    try:
        assert two.run(call("GET", "/jobs/a/wait?timeout=0")).status_code == 200
    finally:
        two.close()
        pipe.close()


def test_each_call_may_have_an_event_loop_of_its_own(pipe: Jobpipe) -> None:
    """As Starlette's test client does it, and others that call an application from plain functions."""
    app = in_starlette(pipe, allowed_hosts=["testserver"])

    def call(method: str, path: str, **options: Any) -> httpx.Response:
        async def main() -> httpx.Response:
            async with client_of(app, "testclient", base_url="http://testserver/queue/v1") as client:
                return await client.request(method, path, **options)

        return run(main())

    for number in range(2):
        assert call("POST", "/enqueue", json={"id": f"n{number}"}).status_code == 202
        assert call("GET", f"/jobs/n{number}/wait?timeout=0").json()["status"] == "queued"
    pipe.close()


# Who may call


def test_it_goes_by_the_names_that_it_is_given() -> None:
    pipe = Jobpipe("memory://", allowed_hosts=["jobs.example.org"])

    async def main() -> None:
        app = pipe.asgi(allowed_hosts=["shop.example.org", "*.example.com"])
        async with pipe, client_of(app, base_url="http://localhost") as call:
            for host in ("localhost", "jobs.example.org", "shop.example.org", "a.example.com"):
                assert (await call.get("/jobs", headers={"host": host})).status_code == 200
                own = {"host": host, "origin": f"https://{host}"}
                assert (await call.post("/enqueue", json={}, headers=own)).status_code == 202
            problem(await call.get("/jobs", headers={"host": "evil.example.org"}), 400)
            foreign = {"origin": "https://evil.example.org"}
            problem(await call.post("/enqueue", json={}, headers=foreign), 403)

    run(main())


@pytest.mark.parametrize(
    ("address", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.7", False),
        ("2001:db8::1", False),
        ("::ffff:10.0.0.7", False),
        (None, True),
        ("testclient", True),
    ],
)
def test_without_a_token_only_this_machine_may_call(address: str | None, is_local: bool) -> None:
    """A prefix does not change it, and probes are open to all. A socket in the file system has no address."""

    async def main() -> None:
        async with Jobpipe("memory://") as pipe:
            async with client_of(nested(pipe), address) as call:
                assert (await call.get("/health")).status_code == 200
                response = await call.post("/enqueue", json={})
                if is_local:
                    assert response.status_code == 202
                else:
                    assert problem(response, 403)["type"].endswith("foreign-caller")
            async with client_of(nested(pipe, insecure=True), address) as call:
                assert (await call.post("/enqueue", json={})).status_code == 202

    run(main())


def test_with_a_token_everybody_may_call_who_has_it() -> None:
    async def main() -> None:
        async with Jobpipe("memory://", token="geheim") as pipe:
            for insecure in (False, True):
                async with client_of(nested(pipe, insecure=insecure), "10.0.0.7") as call:
                    problem(await call.post("/enqueue", json={}), 401)
                    right = {"authorization": "Bearer geheim"}
                    assert (await call.post("/enqueue", json={}, headers=right)).status_code == 202

    run(main())


def test_a_service_of_its_own_leaves_it_to_the_listening_address() -> None:
    scope: dict[str, Any] = {"method": "GET", "headers": [(b"host", b"localhost")], "client": ("10.0.0.7", 1)}
    settings = Jobpipe("memory://").settings
    Guard(settings).check(scope)
    with pytest.raises(ForeignCallerError):
        Guard(settings, only_local=True).check(scope)


def test_settings_may_be_given_after_the_application_was_made() -> None:
    """So that `jobpipe worker app:pipe --workers 2` can load a module that mounts the pipe."""
    pipe = Jobpipe("memory://")
    app = pipe.asgi()
    pipe.configure(token="geheim")

    async def main() -> None:
        async with pipe, client_of(app, base_url="http://localhost") as call:
            problem(await call.get("/jobs"), 401)

    run(main())
