"""The service's own HTTP server over real sockets: what HTTP says, and clients that hold on to what they should not.

Its clock is the test's own: what takes minutes in service takes milliseconds here, however busy the machine is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from jobpipe.web.server.limits import Limits
from jobpipe.web.server.server import Server
from jobpipe.web.tally import Tally

from ...support.waiting import until

LIMITS = Limits(sweep=0.01)
"""Those of the service, looked at often."""
HOST = b"Host: localhost\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
CHUNKED = b"POST /echo HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
KIB = 1024


class App:
    """Answers what it was asked; `/events` and `/wait` last until the client is gone."""

    def __init__(self) -> None:
        self.open = 0
        self.scopes: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        path = scope["path"]
        if path in ("/events", "/wait"):
            self.open += 1
            try:
                if path == "/events":
                    await send({"type": "http.response.start", "status": 200, "headers": []})
                    await send({"type": "http.response.body", "body": b"begun", "more_body": True})
                while (await receive())["type"] != "http.disconnect":
                    pass
            finally:
                self.open -= 1
            return
        if path == "/raise":
            raise ValueError("a bug")
        if path == "/half":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
            return
        body = b"ok"
        if path == "/large":
            body = b"x" * 100 * KIB
        elif path == "/echo":
            parts = []
            while (message := await receive())["type"] == "http.request":
                parts.append(message["body"])
                if not message["more_body"]:
                    break
            else:
                return
            body = b"".join(parts)
            self.bodies.append(body)
        status = 413 if path == "/refuse" else 204 if path == "/nothing" else 200
        headers = [] if path == "/stream" or status == 204 else [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if status == 204 else body})


class Client:
    """A connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next one."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        body = b""
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readline(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readline()
        return int(head[0].split()[1]), headers, body

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        await self.send(request)
        return await self.answer()

    async def rest(self) -> bytes:
        """What comes until the server ends the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""


class World:
    """A server and its clients."""

    def __init__(self, server: Server, app: App, port: int) -> None:
        self.server = server
        self.app = app
        self.port = port
        self.clients: list[Client] = []
        self.time = 0.0
        """What the server takes for the time."""
        server.now = lambda: self.time

    async def pass_by(self, condition: Callable[[], object]) -> float:
        """Let time go by, a second at a time, until it holds; how many seconds that took."""
        began = self.time
        while not condition():
            await asyncio.sleep(1.5 * LIMITS.sweep)  # so that the server looks at its timers
            self.time += 1.0
            assert self.time - began < 1_000
        return self.time - began

    async def connect(self, room: int | None = None) -> Client:
        """A connection; with `room`, the client's system keeps no more than that for it."""
        end = socket.socket()
        if room is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        end.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(end, ("127.0.0.1", self.port))
        except OSError:
            end.close()
            raise
        self.clients.append(Client(*await asyncio.open_connection(sock=end, limit=2 * KIB)))
        return self.clients[-1]

    async def is_well(self) -> bool:
        client = await self.connect()
        status, _, _ = await client.ask(HEALTH)
        client.writer.close()
        return status == 200


Scenario = Callable[[World], Coroutine[Any, Any, None]]


@contextlib.asynccontextmanager
async def world(limits: Limits, tally: Tally | None = None) -> AsyncIterator[World]:
    listener = socket.create_server(("127.0.0.1", 0))
    app = App()
    server = Server(app, limits, tally)
    server.start([listener])
    found = World(server, app, listener.getsockname()[1])
    try:
        yield found
    finally:
        for client in found.clients:
            client.writer.transport.abort()
        await server.close()


@pytest.fixture(params=["uvloop", "asyncio"])
def loop_factory(request: pytest.FixtureRequest) -> Any:
    return uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop


Run = Callable[..., None]


@pytest.fixture
def run(loop_factory: Any) -> Run:
    def run(scenario: Scenario, limits: Limits = LIMITS, tally: Tally | None = None) -> None:
        async def main() -> None:
            async with asyncio.timeout(30), world(limits, tally) as found:
                await scenario(found)

        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(main())

    return run


# What HTTP says


def test_requests_are_answered_one_after_the_other_on_one_connection(run: Run) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        status, headers, body = await client.ask(HEALTH)
        assert (status, body) == (200, b"ok")
        assert "date" in headers
        assert "server" not in headers
        assert (await client.ask(b"POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"))[2] == b"hello"
        assert (await client.ask(CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"))[2] == b"abcde"
        status, headers, body = await client.ask(b"GET /stream HTTP/1.1\r\n\r\n")
        assert (headers["transfer-encoding"], body) == ("chunked", b"ok")
        status, headers, body = await client.ask(b"GET /nothing HTTP/1.1\r\n\r\n")
        assert (status, body, "transfer-encoding" in headers) == (204, b"", False)
        await client.send(b"HEAD /health HTTP/1.1\r\n\r\n" + HEALTH)
        head = await client.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 2\r\n" in head
        assert (await client.answer())[0] == 200
        scope = world.app.scopes[-1]
        assert (scope["type"], scope["scheme"], scope["http_version"]) == ("http", "http", "1.1")
        assert scope["client"][0] == "127.0.0.1"
        assert scope["server"] == ("127.0.0.1", world.port)

    run(scenario)


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a%20b/%C3%A4?x=%20&y", "/a b/ä", b"x=%20&y"),
        (b"/a?b?c", "/a", b"b?c"),
        (b"http://other:80/a?b", "/a", b"b"),
        (b"/a#b", "/a", b""),
        (b"/%00", "/\0", b""),
    ],
)
def test_targets_are_split(target: bytes, path: str, query: bytes) -> None:
    from jobpipe.web.server.exchange import split_target

    assert split_target(target)[1:] == (path, query)


def test_pipelined_requests_are_answered_in_order(run: Run) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        requests = [
            b"POST /echo HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body := b"%d," % n * 99), body)
            for n in range(500)
        ]
        sending = asyncio.create_task(client.send(b"".join(requests)))
        for number in range(500):
            assert (await client.answer())[2] == b"%d," % number * 99
        await sending
        # what is wrong comes in its turn, too
        await client.send(HEALTH + HEALTH + b"nonsense\r\n\r\n")
        assert [(await client.answer())[0] for _ in range(3)] == [200, 200, 400]
        assert await client.rest() == b""

    run(scenario)


def test_a_large_body_waits_until_the_application_takes_it(run: Run) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        body = bytes(range(256)) * 8 * KIB
        head = b"POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
        await client.send(head)
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        sending = asyncio.create_task(client.send(body))
        assert (await client.answer())[2] == body
        await sending
        # a body that nobody wants is read all the same, and the connection goes on
        assert (await client.ask(b"POST /refuse HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n"))[0] == 413
        await client.send(b"x" * 2_000_000)
        assert (await client.ask(HEALTH))[0] == 200

    run(scenario)


def test_a_connection_ends_where_the_client_says_so(run: Run) -> None:
    async def scenario(world: World) -> None:
        for request in (
            b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n" + HEALTH,
            b"GET /health HTTP/1.0\r\n\r\n",
            b"GET /stream HTTP/1.0\r\n\r\n",
        ):
            client = await world.connect()
            await client.send(request)
            head, _, body = (await client.rest()).partition(b"\r\n\r\n")
            assert b"connection: close" in head
            assert body == b"ok"

    run(scenario)


def test_an_upgrade_that_is_asked_for_is_ignored(run: Run) -> None:
    """As Java's client does with each request."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n"

    async def scenario(world: World) -> None:
        client = await world.connect()
        for framing, sent in (
            (b"Content-Length: 5\r\n", b"hello"),
            (b"Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
        ):
            assert (await client.ask(b"POST /echo HTTP/1.1\r\n" + upgrade + framing + b"\r\n" + sent))[
                2
            ] == b"hello"
        for framing in (b"", b"Content-Length: 0\r\n"):
            assert (await client.ask(b"GET /health HTTP/1.1\r\n" + upgrade + framing + b"\r\n"))[0] == 200
        assert (await client.ask(HEALTH))[0] == 200
        assert (await client.ask(b"CONNECT a:80 HTTP/1.1\r\n\r\n"))[0] == 400

    run(scenario)


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01 <script>\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nno header\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: gzip\r\n\r\n",
        CHUNKED + b"x\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET nonsense HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_as_a_problem(run: Run, request_: bytes) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        status, headers, body = await client.ask(request_)
        assert status == json.loads(body)["status"] == 400
        assert headers["content-type"] == "application/problem+json"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["connection"] == "close"
        assert b"script" not in body
        assert await client.rest() == b""
        assert not world.app.bodies

    run(scenario)


def test_what_the_application_breaks_is_told_and_does_not_break_the_server(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        status, _, body = await client.ask(b"GET /raise HTTP/1.1\r\n\r\n")
        assert status == json.loads(body)["status"] == 500
        assert b"bug" not in body
        client = await world.connect()
        await client.send(b"GET /half HTTP/1.1\r\n\r\n")
        assert not (await client.rest()).endswith(b"0\r\n\r\n")
        assert await world.is_well()

    run(scenario)
    assert [record.getMessage() for record in caplog.records] == [
        "unexpected error in GET '/raise'",
        "unexpected error in GET '/half'",
    ]


# Trailers, and heads


@pytest.mark.parametrize(
    "trailers", [b"Authorization: Bearer x\r\nOrigin: http://localhost\r\n", b"", b"A: b\r\n" * 99]
)
def test_trailers_are_not_headers(run: Run, trailers: bytes) -> None:
    """Fault 37."""

    async def scenario(world: World) -> None:
        client = await world.connect()
        assert (await client.ask(CHUNKED + b"2\r\nhi\r\n0\r\n" + trailers + b"\r\n"))[2] == b"hi"
        assert [name for name, _ in world.app.scopes[0]["headers"]] == [b"host", b"transfer-encoding"]
        assert (await client.ask(HEALTH))[0] == 200

    run(scenario)


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (CHUNKED + b"2\r\nhi\r\n0\r\n", b"X-A: 1\r\n" * 500),
        (CHUNKED + b"2\r\nhi\r\n0\r\nX-A: ", b"y" * 4_000),
        (CHUNKED + b"2\r\nhi\r\n0\r\n", b"y" * 4_000),
        (CHUNKED + b"2;", b"y" * 4_000),
        (b"GET /health HTTP/1.1\r\n", b"X-A: 1\r\n" * 500),
        (b"GET /health HTTP/1.1\r\nX-A: ", b"y" * 4_000),
        (b"GET /", b"y" * 4_000),
    ],
)
def test_heads_and_trailers_without_end_are_cut_off(run: Run, begin: bytes, piece: bytes) -> None:
    """Fault 37: as many and as one."""

    async def scenario(world: World) -> None:
        client = await world.connect()
        await client.send(begin)
        with contextlib.suppress(ConnectionError):
            for _ in range(500):
                await client.send(piece)
                await asyncio.sleep(0)  # the server's turn
            pytest.fail("it took 2 MB of them")
        assert (await client.rest())[9:12] in (b"431", b"")  # where it was cut off, the answer may be lost
        assert await world.is_well()
        assert not world.app.bodies

    run(scenario, Limits(head_bytes=64 * KIB, linger_bytes=64 * KIB))


def test_who_is_refused_can_read_why(run: Run) -> None:
    async def scenario(world: World) -> None:
        client = await world.connect()
        status, _, body = await client.ask(b"GET / HTTP/1.1\r\nX: " + b"y" * 100 * KIB)
        assert status == json.loads(body)["status"] == 431

    run(scenario)


# Who holds on to a connection


@pytest.mark.parametrize(
    ("begin", "piece", "status"),
    [
        (b"", b"", b""),
        (b"", b"\r\n", b""),
        (b"GET /he", b"", b"408"),
        (b"GET /health HTTP/1.1\r\n", b"A: b\r\n", b"408"),
        (b"POST /echo HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", b"x", b"408"),
        (CHUNKED, b"1\r\nx\r\n", b"408"),
        (HEALTH, b"\r\n", b"200"),
        (HEALTH + b"GET /he", b"a", b"200"),
        (b"POST /refuse HTTP/1.1\r\nContent-Length: 9999\r\n\r\n", b"x", b"413"),
    ],
)
def test_who_does_not_come_to_an_end_is_cut_off(run: Run, begin: bytes, piece: bytes, status: bytes) -> None:
    """Fault 38: whatever it sends meanwhile, but a whole request."""

    async def scenario(world: World) -> None:
        client = await world.connect()
        await client.send(begin)
        await until(lambda: world.server.connections == 1)

        async def trickle() -> None:
            with contextlib.suppress(ConnectionError):
                while piece:
                    await client.send(piece)
                    await asyncio.sleep(LIMITS.sweep)

        trickling = asyncio.create_task(trickle())
        rest = asyncio.create_task(client.rest())
        assert await world.pass_by(lambda: world.server.connections == 0) <= 75
        assert (await rest)[9:12] in (status, b"")
        trickling.cancel()

    run(scenario)


def test_who_asks_again_and_again_stays(run: Run) -> None:
    """Far longer than any of the limits: each whole request sets the timers back."""

    async def scenario(world: World) -> None:
        client, idle = await world.connect(), await world.connect()
        for _ in range(20):
            assert (await client.ask(HEALTH))[0] == 200
            world.time += 25
            await asyncio.sleep(2 * LIMITS.sweep)
        await idle.rest()  # so that it is known that the timers were looked at
        assert world.server.connections == 1

    run(scenario)


def test_streams_and_waits_stay(run: Run) -> None:
    async def scenario(world: World) -> None:
        for path in (b"/events", b"/wait"):
            await (await world.connect()).send(b"GET " + path + b" HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 2)
        for _ in range(3):
            silent = await world.connect()
            world.time += 300
            await silent.rest()  # so that it is known that the timers were looked at
        assert world.app.open == 2

    run(scenario)


def test_who_reads_no_answers_is_cut_off_and_a_slow_reader_is_not(run: Run) -> None:
    """Fault 38."""

    async def scenario(world: World) -> None:
        mute, slow = await world.connect(4 * KIB), await world.connect(4 * KIB)
        count = 100
        for client in (mute, slow):
            client.writer.write(b"GET /large HTTP/1.1\r\n\r\n" * count)
        mute.writer.transport.pause_reading()  # type: ignore[attr-defined]
        received = 0
        while data := await slow.reader.read(100 * KIB):
            received += len(data)
            if received > count * 100 * KIB:
                break
            if world.server.connections == 2:
                await asyncio.sleep(1.5 * LIMITS.sweep)
                world.time += 1
                assert world.time <= 90
        assert received > count * 100 * KIB
        await until(lambda: world.server.connections == 1)

    run(scenario)


def test_who_asks_behind_a_stream_and_vanishes_leaves_nothing_behind(run: Run) -> None:
    """Fault 39: with a little, and with more than is read ahead."""

    async def scenario(world: World) -> None:
        for number in range(60):
            client = await world.connect()
            first = b"GET /events HTTP/1.1\r\n\r\n" if number % 2 else b"GET /wait HTTP/1.1\r\n\r\n"
            behind = HEALTH * 10_000 if number < 4 else HEALTH
            client.writer.write(first + behind)
            await until(lambda: world.app.open > 0)
            client.writer.transport.abort()
            if number < 4:  # it is not read from, so that it is not known that the client has left
                assert await world.pass_by(lambda: world.app.open == 0) <= 15
            await until(lambda: world.app.open == 0)
        await until(lambda: world.server.connections == 0)
        assert not world.server._tasks
        assert len(world.app.scopes) == 60  # nobody would have read the other answers

    run(scenario)


def test_the_oldest_idle_connections_make_room_for_new_ones(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 38: not those that are being served; and there is one log line."""

    async def scenario(world: World) -> None:
        stream = await world.connect()
        await stream.send(b"GET /events HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 1)
        begun = [b"", b"\r\n", b"GET /he", b"POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nx", HEALTH]
        idle = []
        for number in range(50):
            world.time += 0.1
            idle.append(await world.connect())
            await idle[-1].send(begun[number % len(begun)])
            assert await world.is_well()
        assert world.server.connections <= 10
        for client in idle[:40]:
            assert (await client.rest())[9:12] in (b"", b"200")
        assert world.app.open == 1

    run(scenario, Limits(connections=10))
    first, last = [record.getMessage() for record in caplog.records]
    assert first.startswith("more than 10 connections")
    assert "times more" in last  # at the stop


def test_where_nobody_can_make_room_a_new_connection_is_told(run: Run) -> None:
    async def scenario(world: World) -> None:
        for _ in range(3):
            await (await world.connect()).send(b"GET /wait HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 3)
        client = await world.connect()
        status, headers, body = await client.answer()
        assert status == json.loads(body)["status"] == 503
        assert headers["retry-after"]

    run(scenario, Limits(connections=3))


def test_a_flood_of_broken_connections_is_summed_up_in_the_log(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 45."""
    tally = Tally()

    async def scenario(world: World) -> None:
        for _ in range(100):
            client = await world.connect()
            assert (await client.ask(b"nonsense\r\n\r\n"))[0] == 400
            client.writer.transport.abort()
        assert len(caplog.records) == 1
        await world.server.close()

    run(scenario, tally=tally)
    first, last = [record.getMessage() for record in caplog.records]
    assert first == "closed a connection, 400: what was sent is not HTTP/1.1 (from 127.0.0.1)"
    assert "99 times more" in last


def test_the_log_is_summed_up_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        tally = Tally(every=0.05)
        for _ in range(10):
            tally.note("it broke", "here")
        await until(lambda: len(caplog.records) == 2)
        tally.note("it broke", "there")
        await until(lambda: len(caplog.records) == 3)
        await until(lambda: not tally._kinds)
        tally.note("it broke")
        tally.close()

    caplog.set_level(logging.INFO)
    asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == [
        "it broke (here)",
        "it broke: 9 times more within 0.05 s, the last here",
        "it broke: 1 times more within 0.05 s, the last there",
        "it broke",
    ]


# The stop


def test_the_stop_lets_answers_end_and_cuts_off_the_rest(run: Run) -> None:
    async def scenario(world: World) -> None:
        idle, half, stream = [await world.connect() for _ in range(3)]
        assert (await idle.ask(HEALTH))[0] == 200
        await half.send(b"POST /echo HTTP/1.1\r\nContent-Length: 2\r\n\r\n")
        await stream.send(b"GET /events HTTP/1.1\r\n\r\n")
        await until(lambda: world.app.open == 1 and len(world.app.scopes) == 3)
        closing = asyncio.create_task(world.server.close())
        assert await idle.rest() == b""
        with pytest.raises(ConnectionError):
            await world.connect()
        status, headers, body = await half.ask(b"ok")
        assert (status, headers["connection"], body) == (200, "close", b"ok")
        assert await half.rest() == b""
        await closing
        assert world.app.open == 0
        assert b"begun" in await stream.rest()

    run(scenario, Limits(closing=0.5))


def test_the_cap_follows_from_the_files_that_the_process_may_open() -> None:
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= Limits().most_connections < files
    assert Limits(connections=7).most_connections == 7
