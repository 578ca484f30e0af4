"""A real server on a loopback port: streams, limits, clients that vanish, and the stop."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from jobpipe import Jobpipe
from jobpipe.errors import StoreAwayError
from jobpipe.stores.memory import MemoryStore
from jobpipe.web import serve as serving_module
from jobpipe.web.app import WebApp, make_app
from jobpipe.web.auth import WrongTokens
from jobpipe.web.sse import events

from ...support.waiting import until
from .conftest import Server, problem, serving


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> list[WebApp]:
    """The applications that `serve` makes, to look inside; their heartbeats are quick."""
    made: list[WebApp] = []

    def make(pipe: Jobpipe, service: Any) -> WebApp:
        made.append(make_app(pipe, service, heartbeat=0.05))
        return made[-1]

    monkeypatch.setattr(serving_module, "make_app", make)
    return made


async def frames(response: httpx.Response) -> AsyncIterator[dict[str, str]]:
    """The blocks of a stream; a comment has the key ''."""
    block: dict[str, str] = {}
    async for line in response.aiter_lines():
        if not line:
            yield block
            block = {}
        else:
            name, _, value = line.partition(":")
            block[name] = value.strip()


async def jobs(stream: AsyncIterator[dict[str, str]], number: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    async for block in stream:
        if "data" in block:
            found.append(block)
            if len(found) == number:
                break
    return found


def run(scenario: Any, **settings: Any) -> None:
    async def main() -> None:
        async with (
            serving(Jobpipe("memory://", **settings)) as server,
            httpx.AsyncClient(verify=False, base_url=server.url, timeout=20) as client,
        ):
            await scenario(server, client)

    asyncio.run(main())


def test_events_come_in_order_and_last_event_id_reaches_back(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        async with client.stream("GET", "/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            stream = frames(response)
            assert (await anext(stream)) == {"": "connected"}
            assert (await anext(stream)) == {"": "heartbeat"}
            await client.post("/enqueue", json={"id": "t1"})
            found = await jobs(stream, 3)
        assert [each["event"] for each in found] == ["job"] * 3
        data = [json.loads(each["data"]) for each in found]
        assert [each["status"] for each in data] == ["queued", "running", "done"]
        assert data[0] == {"id": "t1", "type": "echo", "queue": "default", "status": "queued", "attempts": 0}
        numbers = [int(each["id"]) for each in found]
        assert numbers == sorted(set(numbers))
        async with client.stream("GET", "/events", headers={"last-event-id": found[0]["id"]}) as response:
            again = await jobs(frames(response), 2)
        assert again == found[1:]
        for wrong in ("x", "-", "1.5", "1e3", "0x1"):
            problem(await client.get("/events", headers={"last-event-id": wrong}), 422)

    run(scenario)


def test_who_wants_the_pulse_gets_the_numbers_every_second(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        async with client.stream("GET", "/events?pulse=true") as response:
            stream = frames(response)
            await client.post("/enqueue", json={"id": "t1"})
            await client.post("/enqueue", json={"id": "t2", "queue": "later", "delay": 60})
            await client.post("/queues/later/pause")
            seen = 0
            async for block in stream:
                if block.get("event") == "pulse" and "later" in block["data"]:
                    assert "id" not in block, "Last-Event-ID is that of a job"
                    pulse = json.loads(block["data"])
                    queues = {each["name"]: each for each in pulse["queues"]}
                    seen += queues["later"]["paused"] and pulse["scheduled"] == 1
                    if seen == 2:
                        break
        past = (await client.get("/stats/history")).json()
        assert past["moments"][-1]["scheduled"] == 1
        assert sum(moment["done"] for moment in past["moments"]) == pytest.approx(1, abs=0.2)
        assert {queue["name"] for queue in past["queues"]} == {"default", "later"}
        await until(lambda: apps[0].events.clients == 0)
        problem(await client.get("/events?pulse=maybe"), 422)
        problem(await client.get("/events?pulses=true"), 422)

    run(scenario)


def test_the_pulse_is_felt_where_no_service_runs() -> None:
    """An application without workers of its own looks at the store itself, as long as somebody listens."""

    async def main() -> None:
        pipe = Jobpipe("memory://")
        app = make_app(pipe)
        await pipe.enqueue("echo", id="t1", delay=60)
        sent: asyncio.Queue[Any] = asyncio.Queue()
        gone = asyncio.Event()

        async def receive() -> dict[str, str]:
            await gone.wait()
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "path": "/events", "query_string": b"pulse=1"}
        scope |= {"headers": [(b"host", b"localhost")], "http_version": "1.1", "scheme": "http"}
        task = asyncio.create_task(app(scope, receive, sent.put))
        async with asyncio.timeout(20):
            while b'event: pulse\ndata: {"scheduled":1' not in (await sent.get()).get("body", b""):
                pass
        gone.set()
        await task
        assert [each for each in asyncio.all_tasks() if each is not asyncio.current_task()] == []
        pipe.close()

    asyncio.run(main())


def test_a_thousand_events_back_none_is_missed_or_doubled(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        batch = {"jobs": [{"id": f"a{number}"} for number in range(500)]}
        await client.post("/enqueue/batch", json=batch)
        async with client.stream("GET", "/events", headers={"last-event-id": "0"}) as response:
            stream = frames(response)
            first = await jobs(stream, 1)
            await client.post("/enqueue/batch", json={"jobs": [{"id": f"b{n}"} for n in range(500)]})
            rest = await jobs(stream, 999)
        numbers = [int(each["id"]) for each in first + rest]
        assert numbers == list(range(1, 1_001))

    run(scenario, workers=0, queue_size=0)


def test_a_number_that_no_event_has_begins_anew(apps: list[WebApp]) -> None:
    """However large: it is that of a store that is gone."""

    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        await client.post("/enqueue", json={"id": "t1"})
        for number in ("999999", "99999999999999999999", "9" * 5_000, "-1", "-" + "9" * 30):
            async with client.stream("GET", "/events", headers={"last-event-id": number}) as response:
                assert response.status_code == 200
                (found,) = await jobs(frames(response), 1)
            assert json.loads(found["data"])["id"] == "t1"

    run(scenario, workers=0)


async def raw_stream(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1_024)
    writer.write(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"connected")
    return reader, writer


def test_the_places_of_clients_that_vanish_come_back(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        (app,) = apps
        writers = [(await raw_stream(server))[1] for _ in range(100)]
        assert app.events.clients == 100
        for writer in writers:
            writer.transport.abort()
        await until(lambda: app.events.clients == 0)
        assert (await client.get("/health")).status_code == 200

    run(scenario)


def test_a_slow_reader_is_cut_off_and_others_are_not(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        (app,) = apps
        slow = [await raw_stream(server) for _ in range(3)]
        sent = 0
        while app.events.clients:
            jobs_ = [{"queue": "q" * 100, "type": "t" * 100} for _ in range(1_000)]
            await client.post("/enqueue/batch", json={"jobs": jobs_})
            sent += 1_000
            assert sent < 200_000
        assert (await client.get("/health")).status_code == 200
        for _, writer in slow:
            writer.transport.abort()

    run(scenario, workers=0, queue_size=0)


def test_a_reader_that_falls_behind_for_a_while_misses_nothing(apps: list[WebApp]) -> None:
    """It takes little into its own memory, so that most has to wait for it in the service."""

    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        small = httpx.AsyncHTTPTransport(socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)])
        async with (
            httpx.AsyncClient(verify=False, base_url=server.url, timeout=20, transport=small) as slow,
            slow.stream("GET", "/events") as response,
        ):
            stream = frames(response)
            await anext(stream)
            for _ in range(6):
                jobs_ = [{"queue": "q" * 100, "type": "t" * 100} for _ in range(1_000)]
                await client.post("/enqueue/batch", json={"jobs": jobs_})
            found = await jobs(stream, 6_000)
            assert [int(each["id"]) for each in found] == list(range(1, 6_001))
            await client.post("/enqueue", json={"id": "last"})
            (last,) = await jobs(stream, 1)
            assert json.loads(last["data"])["id"] == "last"

    run(scenario, workers=0, queue_size=0)


def test_only_so_many_streams_are_open(apps: list[WebApp], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_CLIENTS", 1)

    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        _, writer = await raw_stream(server)
        problem(await client.get("/events"), 503)
        writer.transport.abort()

    run(scenario)


def test_the_stop_ends_streams_and_waits_and_keeps_reads_until_the_jobs_are_done(apps: list[WebApp]) -> None:
    async def main() -> None:
        pipe = Jobpipe("memory://", grace=5)
        go, begun = asyncio.Event(), asyncio.Event()

        @pipe.job("slow")
        async def slow() -> str:
            begun.set()
            await go.wait()
            return "finished"

        async with (
            serving(pipe) as server,
            httpx.AsyncClient(verify=False, base_url=server.url, timeout=20) as client,
        ):
            await client.post("/enqueue", json={"id": "s", "type": "slow"})
            await client.post("/enqueue", json={"id": "later", "delay": 600})
            await begun.wait()
            async with client.stream("GET", "/events") as response:
                stream = frames(response)
                await anext(stream)
                waiting = asyncio.create_task(client.get("/jobs/later/wait?timeout=300"))
                await until(lambda: len(pipe.feed._on_events) >= 2)
                server.stop.set()
                await until(lambda: apps[0].site.service and apps[0].site.service.is_stopping)
                problem(await client.get("/readyz"), 503)
                problem(await client.post("/enqueue", json={}), 503)
                assert (await client.get("/jobs/s")).json()["status"] == "running"
                go.set()
                began_at = time.monotonic()
                (done,) = await jobs(stream, 1)
                assert json.loads(done["data"])["status"] == "done"
                assert [block async for block in stream if block.get("") != "heartbeat"] == []
                assert (await waiting).json()["status"] == "scheduled"
                assert time.monotonic() - began_at < 15

    asyncio.run(main())


def test_a_crowd_of_guessers_is_cut_off_and_learns_nothing(
    apps: list[WebApp], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jobpipe.web.app._MOST_DELAYED", 1)
    monkeypatch.setattr(WrongTokens, "DELAY", 1_000.0)
    monkeypatch.setattr(WrongTokens, "LONGEST_DELAY", 1_000.0)

    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        wrong, right = ({"Authorization": f"Bearer {token}"} for token in ("wrong", "right"))
        for _ in range(20):
            problem(await client.get("/jobs", headers=wrong), 401)
        waiting = asyncio.create_task(client.get("/jobs", headers=wrong))
        await until(lambda: apps[0]._delayed == 1)
        with pytest.raises(httpx.TransportError):
            await client.get("/jobs", headers=wrong)
        assert (await client.get("/jobs", headers=right)).status_code == 200
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert "Traceback" not in caplog.text

    run(scenario, token="right")


def test_the_stop_does_not_wait_for_streams_that_nobody_reads(apps: list[WebApp]) -> None:
    async def main() -> None:
        began_at = 0.0
        async with serving(Jobpipe("memory://", workers=0, queue_size=0)) as server:
            async with httpx.AsyncClient(verify=False, base_url=server.url) as client:
                streams = [await raw_stream(server) for _ in range(20)]
                jobs_ = [{"queue": "q" * 100, "type": "t" * 100} for _ in range(1_000)]
                await client.post("/enqueue/batch", json={"jobs": jobs_})
            began_at = time.monotonic()
        assert time.monotonic() - began_at < 15  # they would stay for ever
        for _, writer in streams:
            writer.transport.abort()

    asyncio.run(main())


def test_a_store_that_is_away_at_the_start_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jobpipe.worker.service._LOOK_AGAIN", 0.01)

    class Late(MemoryStore):
        attempts = 0

        def migrate(self) -> list[str]:
            self.attempts += 1
            if self.attempts < 5:
                raise StoreAwayError("no answer yet")
            return []

    async def main() -> None:
        async with (
            serving(Jobpipe(Late())) as server,
            httpx.AsyncClient(verify=False, base_url=server.url) as client,
        ):
            assert (await client.get("/readyz")).status_code == 200
        assert [record.message for record in caplog.records if "waited for" in record.message] == [
            "the store is away, and waited for: no answer yet"
        ]

    asyncio.run(main())


def test_a_large_body_is_refused_before_it_is_sent(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = "POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 100000000\r\n\r\n{{".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 413")
        writer.close()
        sent = await client.post(
            "/enqueue", content=b"x" * 20_000_000, headers={"content-type": "application/json"}
        )
        problem(sent, 413)

    run(scenario)


def test_headers_without_end_are_cut_off() -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        _reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /health HTTP/1.1\r\nX: ")
        try:
            for _ in range(10_000):
                writer.write(b"x" * 10_000)
                await writer.drain()
            pytest.fail("it took 100 MB of headers")
        except ConnectionError:
            pass
        assert (await client.get("/health")).status_code == 200

    run(scenario)


def test_a_client_that_leaves_while_it_waits_is_not_waited_for(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        await client.post("/enqueue", json={"id": "t1", "delay": 600})
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /jobs/t1/wait?timeout=300 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        feed = server.pipe.feed
        await until(lambda: feed._on_events)
        writer.transport.abort()
        await until(lambda: not feed._on_events)

    run(scenario)


def test_the_server_says_nothing_of_itself(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        assert "server" not in (await client.get("/health")).headers

    run(scenario)


def test_what_is_no_http_is_told_as_a_problem(apps: list[WebApp]) -> None:
    async def scenario(server: Server, client: httpx.AsyncClient) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16\x03\x01 <script>\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        assert head.startswith(b"HTTP/1.1 400")
        assert b"content-type: application/problem+json" in head
        assert b"x-content-type-options: nosniff" in head
        assert b"content-length: %d" % len(body) in head
        assert json.loads(body)["status"] == 400
        assert b"script" not in body

    run(scenario)
