"""The built-in type `http`: what it makes of answers, and how it ends in time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from jobpipe import Job, JobStatus
from jobpipe.jobtypes.http.network import Network
from jobpipe.jobtypes.http.patience import patience

from ...support.canary import Canary, Received, answer
from ...support.jobs import finished, reached
from ...support.waiting import run
from .http_calls import PUBLIC, World, call, message_of, pipe_for, result_of

MOST_BYTES = 65_536


# What an answer comes to


def test_an_answer_that_is_no_success_is_retried() -> None:
    def respond(_: Received) -> bytes:
        return answer(503, "later") if canary.connections == 1 else answer(200, "now")

    with Canary(respond) as canary:
        job = call(pipe_for(canary.origin), canary.origin, max_retries=3)
    assert result_of(job) == {"status": 200, "body": "now"}
    assert job.attempts == 2
    assert [run.error.type for run in job.history if run.error] == ["CallFailed"]
    assert {request.headers["idempotency-key"] for request in canary.requests} == {"call"}


@pytest.mark.parametrize("status", [300, 304, 400, 404, 500, 599])
def test_what_failed_is_told_without_secrets(status: int) -> None:
    with Canary(lambda _: answer(status, "" if status == 304 else f"no,\n{'so ' * 500}sorry")) as canary:
        job = call(
            pipe_for(canary.origin),
            f"{canary.origin}/hooks/hunter1?key=hunter2",
            headers={"Authorization": "hunter3"},
        )
    message = message_of(job)
    assert message.startswith(f"POST {canary.origin} answered {status}")
    assert status == 304 or f"{status}: no, so so" in message
    assert len(message) < 300
    assert job.error is not None
    assert "hunter" not in message + (job.error.traceback or "")


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_wants_to_be_left_alone_for_a_while_is(status: int) -> None:
    async def scenario(origin: str) -> Job:
        pipe = pipe_for(origin)
        async with pipe, pipe.running():
            await pipe.enqueue("http", {"url": origin}, id="call", max_retries=1)
            return await reached(pipe, "call", JobStatus.SCHEDULED)

    with Canary(lambda _: answer(status, Retry_After="3600")) as canary:
        job = run(scenario(canary.origin))
    assert job.attempts == 1
    assert job.history[0].error is not None
    assert job.history[0].error.type == "CallFailed"
    wait = job.run_at - job.history[0].ended_at
    assert 3_600 <= wait.total_seconds() <= 3_600 * 1.1 + 60


@pytest.mark.parametrize(
    ("told", "least"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("9" * 21, None),
        ("Mon, 99 Nov 2026 10:00:00 GMT", None),
        ("0", None),
        (" 120 ", 120.0),
        ("9" * 20, 86_400.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10.0),
        ("Thursday, 01-Jan-70 00:16:50 GMT", 10.0),
        ("Thu Jan  1 00:16:50 1970", 10.0),
    ],
)
def test_how_long_a_server_wants_to_be_left_alone(told: str | None, least: float | None) -> None:
    """By all forms that HTTP knows, seen from 1,000 seconds after 1970 began; never less, and a little more at random."""
    now = 1e9 if told is not None and "1999" in told else 1_000.0
    assert patience(told, now, lambda low, high: low) == least
    longest = patience(told, now, lambda low, high: high)
    assert longest == (None if least is None else pytest.approx(least + max(least * 0.1, 1.0)))


def test_a_server_that_is_not_there_is_an_error_and_retried() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        origin = f"http://127.0.0.1:{closed.getsockname()[1]}"
    job = call(pipe_for(origin), f"{origin}/?hunter2", max_retries=1)
    assert job.attempts == 2
    assert message_of(job).startswith(f"POST {origin} failed: ConnectionRefusedError")


def chunked(*chunks: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


@pytest.mark.parametrize(
    ("told", "body"),
    [
        (answer(204), ""),
        (chunked(b"one ", b"two", b""), "one two"),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end"),
        (b"HTTP/1.0 200 OK\r\n\r\nold", "old"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + answer(200, "then"), "then"),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 2 + chunked(b"then", b""), "then"),
        (answer(200, b"a\x00b\xffc\xc3"), "a\ufffdb\ufffdc\ufffd"),
        (answer(200, b"\xed\xa0\x80"), "\ufffd\ufffd\ufffd"),
        (answer(200, b"x" * MOST_BYTES), "x" * MOST_BYTES),
        (answer(200, b"x" * (MOST_BYTES + 1)), "x" * MOST_BYTES),
        (answer(200, b"x" * (MOST_BYTES - 1) + "ü".encode()), "x" * (MOST_BYTES - 1)),
        (chunked(*[b"x" * 1000] * 100, b""), "x" * MOST_BYTES),
        (answer(200, b"zipped", Content_Encoding="gzip"), "zipped"),
    ],
)
def test_a_body_is_read_as_text(told: bytes, body: str) -> None:
    with Canary(lambda _: told) as canary:
        assert result_of(call(pipe_for(canary.origin), canary.origin))["body"] == body


def endless(head: bytes, piece: bytes) -> Iterable[bytes]:
    yield head
    while True:
        yield piece


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x" * MOST_BYTES),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", b"x" * MOST_BYTES),
        (chunked(), b"10000\r\n%s\r\n" % (b"x" * MOST_BYTES)),
        (chunked() + b"-1\r\n", b"x" * MOST_BYTES),
        (chunked() + b"ffffffffffff\r\n", b"x" * MOST_BYTES),
    ],
    ids=["open", "length", "chunks", "negative", "giant"],
)
def test_no_more_of_a_huge_body_is_read_than_is_kept(head: bytes, piece: bytes) -> None:
    """The server would go on for ever: it is hung up on."""
    with Canary(lambda _: endless(head, piece)) as canary:
        assert result_of(call(pipe_for(canary.origin), canary.origin))["body"] == "x" * MOST_BYTES
        assert canary.broken.wait(10)


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        chunked(b"begun"),
        chunked() + b"zz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    ],
    ids=ascii,
)
def test_an_answer_that_is_broken_is_an_error_and_retried(told: bytes) -> None:
    with Canary(lambda _: told) as canary:
        job = call(pipe_for(canary.origin), canary.origin, max_retries=1)
    assert message_of(job).startswith(f"POST {canary.origin} failed: ")
    assert (job.attempts, canary.connections) == (2, 2)


# In time


@pytest.mark.parametrize("respond", [Canary.hold, Canary.trickle, Canary.trickle_body])
def test_a_slow_server_is_left_at_the_deadline(respond: Any) -> None:
    """However often it sends a little."""
    with Canary() as canary:
        canary.respond = lambda request: respond(canary, request)
        job = call(pipe_for(canary.origin), canary.origin, deadline=0.2)
        assert job.error is not None
        assert job.error.type == "DeadlineExceeded"
        if respond is not Canary.hold:  # which would not notice
            assert canary.broken.wait(10), "the connection was not let go"


def test_a_call_that_is_cancelled_lets_its_connection_go() -> None:
    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.enqueue("http", {"url": canary.origin}, id="call")
            await asyncio.to_thread(canary.asked.wait)
            await pipe.cancel("call")
            assert (await finished(pipe, "call")).status is JobStatus.CANCELLED

    with Canary() as canary:
        canary.respond = canary.trickle
        pipe = pipe_for(canary.origin)
        run(scenario())
        assert canary.broken.wait(10)


def test_a_call_that_is_cancelled_while_its_name_is_looked_up_connects_to_nothing() -> None:
    """The lookup itself cannot be broken off: the job does not wait for it."""
    begun, go = threading.Event(), threading.Event()
    world = World({"api.example.com": [PUBLIC]})

    def resolve(host: str) -> Sequence[str]:
        begun.set()
        go.wait()
        return world.resolve(host)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.enqueue("http", {"url": "http://api.example.com"}, id="call")
            await asyncio.to_thread(begun.wait)
            (lookup,) = [each for each in threading.enumerate() if each.name == "jobpipe-http"]
            await pipe.cancel("call")
            assert (await finished(pipe, "call")).status is JobStatus.CANCELLED
            go.set()
            await asyncio.to_thread(lookup.join)

    pipe = pipe_for("http://api.example.com", network=Network(resolve, world.connect))
    try:
        run(scenario())
    finally:
        go.set()
    assert (world.asked, world.reached) == (["api.example.com"], [])
