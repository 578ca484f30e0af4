"""Connections: what HTTP says, requests that are none, and the stop."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from jobpipe.web.server.limits import Limits

from ...support.waiting import until
from .connections import CHUNKED, HEALTH, KIB, Run, World

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
