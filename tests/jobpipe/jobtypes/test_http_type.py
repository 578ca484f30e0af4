"""The built-in type `http`: what it sends, what it makes of answers and redirects, and how it ends in time."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from jobpipe import BadInputError, Job, Jobpipe, JobStatus
from jobpipe.jobtypes.builtin import register_http
from jobpipe.jobtypes.http.address import Address
from jobpipe.jobtypes.http.job import HttpJob
from jobpipe.jobtypes.http.network import Network, connect
from jobpipe.jobtypes.http.patience import patience

from ...support.canary import Canary, Received, answer, redirect
from ...support.jobs import finished, reached
from ...support.waiting import run

MOST_BYTES = 65_536
PUBLIC = "93.184.216.34"
"""Stands for any public address: nothing is ever connected to it."""


@pytest.fixture(autouse=True)
def no_settings(away_from_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBPIPE_HTTP_TARGETS", raising=False)


class World:
    """A network of names that lead to addresses, and of addresses that lead to canaries; it notes what is asked of it."""

    def __init__(self, names: dict[str, Sequence[str]], ports: dict[str, int] | None = None) -> None:
        self.names = names
        self.ports = ports or {}
        self.asked: list[str] = []
        self.reached: list[str] = []

    def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.names:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return self.names[host]

    def connect(self, address: Address, port: int, timeout: float) -> socket.socket:
        self.reached.append(str(address))
        if str(address) not in self.ports:
            raise ConnectionRefusedError("nobody is there")
        return connect_to(self.ports[str(address)], timeout)

    def network(self, tls: ssl.SSLContext | None = None) -> Network:
        return Network(self.resolve, self.connect, lambda: tls or ssl.create_default_context())


def connect_to(port: int, timeout: float) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout)


def pipe_for(*targets: str, network: Network | None = None) -> Jobpipe:
    pipe = Jobpipe("memory://", http_targets=targets)
    if network is not None:
        register_http(pipe.job, HttpJob(lambda: pipe.settings.http_targets, network))
    return pipe


def call(pipe: Jobpipe, url: str, max_retries: int = 0, deadline: float | None = None, **payload: Any) -> Job:
    """Put a call in, run it, and return what became of it."""

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await pipe.enqueue(
                "http", {"url": url, **payload}, id="call", max_retries=max_retries, deadline=deadline
            )
            return await finished(pipe, receipt.id)

    return run(scenario())


def result_of(job: Job) -> Any:
    assert job.error is None, job.error
    return job.result


def message_of(job: Job) -> str:
    """Why it failed."""
    assert job.status is JobStatus.FAILED, job
    assert job.error is not None
    return job.error.message


# What is sent


def test_a_url_is_called_and_its_answer_is_the_result() -> None:
    with Canary(lambda _: answer(201, "made ü")) as canary:
        job = call(pipe_for(canary.origin), f"{canary.origin}/things?kind=1&x=%20")
    assert result_of(job) == {"status": 201, "body": "made ü"}
    assert job.deadline == 30
    (request,) = canary.requests
    assert request.line == "POST /things?kind=1&x=%20 HTTP/1.1"
    assert request.body == b""
    assert request.headers == {
        "host": f"127.0.0.1:{canary.port}",
        "content-length": "0",
        "user-agent": "jobpipe",
        "idempotency-key": "call",
        "accept-encoding": "identity",
        "connection": "close",
    }


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_every_method_can_be_used(method: str) -> None:
    with Canary(lambda request: answer(200, "" if request.line.startswith("HEAD") else "yes")) as canary:
        job = call(pipe_for(canary.origin), canary.origin, method=method)
    assert result_of(job) == {"status": 200, "body": "" if method == "HEAD" else "yes"}
    assert canary.requests[0].line == f"{method} / HTTP/1.1"
    assert ("content-length" in canary.requests[0].headers) is (method in ("POST", "PUT", "PATCH"))


@pytest.mark.parametrize(
    ("body", "sent", "kind"),
    [
        ("text ü", "text ü".encode(), "text/plain; charset=utf-8"),
        ("", b"", "text/plain; charset=utf-8"),
        ({"a": [1, None]}, b'{"a":[1,null]}', "application/json"),
        ([], b"[]", "application/json"),
        (0, b"0", "application/json"),
        (False, b"false", "application/json"),
        (None, b"", None),
    ],
    ids=ascii,
)
def test_a_body_is_sent_as_text_or_as_json(body: Any, sent: bytes, kind: str | None) -> None:
    with Canary() as canary:
        result_of(call(pipe_for(canary.origin), canary.origin, body=body))
    (request,) = canary.requests
    assert (request.body, request.headers.get("content-type")) == (sent, kind)
    assert request.headers["content-length"] == str(len(sent))


def test_headers_of_the_payload_win_over_those_of_the_service() -> None:
    headers = {"content-type": "text/csv", "IDEMPOTENCY-KEY": "mine", "User-Agent": "me", "X-Tab": "a\tb"}
    with Canary() as canary:
        result_of(call(pipe_for(canary.origin), canary.origin, headers=headers, body="a,b"))
    found = canary.requests[0].headers
    assert {name: found[name.lower()] for name in headers} == headers
    assert len(found) == 8


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with Canary() as canary, Canary() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.origin)
        monkeypatch.delenv("no_proxy", raising=False)
        result_of(call(pipe_for(canary.origin), canary.origin))
    assert (canary.connections, proxy.connections) == (1, 0)


# What is refused where it is put in


def refused(pipe: Jobpipe, payload: Any) -> BadInputError:
    async def scenario() -> BadInputError:
        async with pipe:
            with pytest.raises(BadInputError) as caught:
                await pipe.enqueue("http", payload)
            assert (await pipe.stats()).queued == 0
            return caught.value

    return run(scenario())


def test_without_targets_the_type_is_off() -> None:
    error = refused(pipe_for(), {"url": "https://api.example.com"})
    assert error.field == "type"
    assert "JOBPIPE_HTTP_TARGETS must list" in str(error)


URL = "https://api.example.com/hook"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "payload.url"),
    ({"url": 5}, "payload.url"),
    ({"url": URL, "verb": "GET"}, "payload.verb"),
    ({"url": URL, "headers": ["a"]}, "payload.headers"),
    ({"url": URL, "headers": {"a": 5}}, "payload.headers[...]"),
    *(
        ({"url": URL, "method": each}, "payload.method")
        for each in ("", "post", "TRACE", "CONNECT", "GET / X\r\n")
    ),
    *(
        ({"url": each}, "payload.url")
        for each in (
            *(
                "",
                "hook",
                "ftp://api.example.com",
                "https://api.example.com\r\nX: y/",
                "https://me:pw@api.example.com",
            ),
            *(
                "https://other.example",
                "http://api.example.com",
                "https://api.example.com:8443",
                "https://example.com",
            ),
            *(
                "https://api.example.com@other.example",
                "https://api.example.com.other.example",
                "http://127.0.0.1",
            ),
        )
    ),
    *(
        ({"url": URL, "headers": {name: "x"}}, f"payload.headers.{name}")
        for name in (
            "Host",
            "CONTENT-LENGTH",
            "Transfer-Encoding",
            "connection",
            "Upgrade",
            "Accept-Encoding",
        )
    ),
    *(
        ({"url": URL, "headers": {name: "x"}}, "payload.headers")
        for name in ("", "a b", "a:", "a\r\nHost", "ü")
    ),
    *(
        ({"url": URL, "headers": {"X-A": value}}, "payload.headers.X-A")
        for value in ("a\r\nHost: b", "a\nb", "a\rb", "ü", "\x7f", "a\x0bb")
    ),
    ({"url": URL, "headers": {"X-A": "1", "x-a": "2"}}, "payload.headers.x-a"),
]


@pytest.mark.parametrize(("payload", "field"), REFUSED, ids=ascii)
def test_a_wrong_call_is_refused_by_the_name_of_the_field(payload: dict[str, Any], field: str) -> None:
    error = refused(pipe_for("https://api.example.com", "https://*.api.example.com"), payload)
    assert error.field == field
    assert str(error).isprintable()


def test_a_complaint_does_not_repeat_secrets() -> None:
    pipe = pipe_for("https://api.example.com")
    for url in ("https://me:hunter2@api.example.com", "https://other.example/?key=hunter2", "hunter2"):
        assert "hunter2" not in str(refused(pipe, {"url": url}))
    error = refused(pipe, {"url": URL, "headers": {"Authorization": "Bearer hunter2\r\n"}})
    assert "hunter2" not in str(error)


def test_a_worker_for_which_it_is_off_leaves_its_jobs_to_others_and_does_not_name_it(sqlite_url: str) -> None:
    async def scenario() -> Job:
        on, off = Jobpipe(sqlite_url, http_targets=[canary.origin]), Jobpipe(sqlite_url)
        async with on, off:
            await on.enqueue("http", {"url": canary.origin}, id="call")
            async with off.running():
                await off.enqueue("echo", id="later")
                await finished(off, "later")
                (worker,) = await off.workers()
                assert worker.types == ("echo",)
                explanation = await off.explain("call")
                assert explanation.reason == "no_worker"
                assert explanation.text.endswith(
                    ": start one that does (the built-in type needs JOBPIPE_HTTP_TARGETS)."
                )
            async with on.running():
                (worker,) = await on.workers()
                assert worker.types == ("echo", "http")
                return await finished(on, "call")

    with Canary() as canary:
        job = run(scenario())
    assert (job.status, job.attempts, canary.connections) == (JobStatus.DONE, 1, 1)


def test_what_was_allowed_and_is_no_more_fails_without_a_retry(sqlite_url: str) -> None:
    async def scenario() -> Job:
        async with Jobpipe(sqlite_url, http_targets=[canary.origin]) as before:
            await before.enqueue("http", {"url": canary.origin}, id="call")
        after = Jobpipe(sqlite_url, http_targets=["https://other.example"])
        async with after, after.running():
            return await finished(after, "call")

    with Canary() as canary:
        job = run(scenario())
    assert "JOBPIPE_HTTP_TARGETS" in message_of(job)
    assert (job.attempts, canary.connections) == (1, 0)


def test_a_program_may_have_a_type_of_that_name_itself() -> None:
    pipe = pipe_for()

    @pipe.job("http")
    async def own(payload: str) -> str:
        return payload.upper()

    async def scenario() -> Job:
        async with pipe, pipe.running():
            return await finished(pipe, (await own.enqueue("mine")).id)

    assert run(scenario()).result == "MINE"


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


# Redirects


@pytest.mark.parametrize(
    ("status", "method", "then", "has_body"),
    [
        *((301, "POST", "GET", False), (302, "POST", "GET", False), (303, "POST", "GET", False)),
        *((307, "POST", "POST", True), (308, "POST", "POST", True), (303, "PUT", "GET", False)),
        *((302, "PUT", "PUT", True), (303, "HEAD", "HEAD", True), (301, "GET", "GET", True)),
    ],
)
def test_a_redirect_is_followed_as_browsers_do(status: int, method: str, then: str, has_body: bool) -> None:
    def respond(request: Received) -> bytes:
        return redirect("../new?x", status) if "/old" in request.line else answer(200)

    with Canary(respond) as canary:
        headers = {"Authorization": "a", "Cookie": "b", "X-Other": "c", "Content-Language": "en"}
        job = call(
            pipe_for(canary.origin), f"{canary.origin}/a/old", method=method, headers=headers, body="data"
        )
    assert result_of(job)["status"] == 200
    last = canary.requests[-1]
    assert last.line == f"{then} /new?x HTTP/1.1"
    assert last.body == (b"data" if has_body else b"")
    kept = {"authorization": "a", "cookie": "b", "x-other": "c"}
    assert {name: last.headers[name] for name in kept} == kept
    assert ("content-language" in last.headers) is ("content-type" in last.headers) is has_body


def test_no_header_of_the_job_is_sent_on_to_another_origin() -> None:
    with Canary() as second, Canary(lambda _: redirect(f"{second.origin}/x", 307)) as first:
        job = call(
            pipe_for(first.origin, second.origin),
            first.origin,
            headers={"AUTHORIZATION": "a", "Cookie": "b", "X-Other": "c", "content-type": "d"},
            body="data",
        )
    assert result_of(job)["status"] == 200
    (request,) = second.requests
    assert request.body == b"data"
    assert request.headers["host"] == f"127.0.0.1:{second.port}"
    assert not {"authorization", "cookie", "x-other"} & request.headers.keys()
    assert request.headers["content-type"] == "text/plain; charset=utf-8", (
        "ours, as that of the job stays behind"
    )
    assert request.headers["idempotency-key"] == job.id


def test_five_redirects_are_followed_and_no_more() -> None:
    with Canary(lambda request: redirect(request.line.split()[1] + "x")) as canary:
        job = call(pipe_for(canary.origin), canary.origin)
    assert "was redirected more than 5 times" in message_of(job)
    assert canary.connections == 6


def test_a_redirect_without_a_place_is_no_success() -> None:
    with Canary(lambda _: answer(302, "where?")) as canary:
        assert "answered 302: where?" in message_of(call(pipe_for(canary.origin), canary.origin))


# Names


def test_a_name_is_looked_up_once_and_its_address_is_connected_to() -> None:
    with Canary() as canary:
        world = World({"api.example.com": [PUBLIC]}, {PUBLIC: canary.port})
        pipe = pipe_for("http://*.example.com", network=world.network())
        assert result_of(call(pipe, "http://API.example.com./x"))["body"] == "tweet"
    assert (world.asked, world.reached) == (["api.example.com"], [PUBLIC])
    assert canary.requests[0].headers["host"] == "api.example.com"


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with Canary() as canary:
        addresses = ["2606:4700::1", "2606:4700::1", PUBLIC]
        world = World({"api.example.com": addresses}, {PUBLIC: canary.port})
        pipe = pipe_for("http://api.example.com", network=world.network())
        result_of(call(pipe, "http://api.example.com"))
    assert world.reached == ["2606:4700::1", PUBLIC]


@pytest.mark.parametrize("names", [{}, {"api.example.com": []}], ids=["unknown", "empty"])
def test_a_name_that_leads_nowhere_is_an_error_and_retried(names: dict[str, Sequence[str]]) -> None:
    pipe = pipe_for("http://api.example.com", network=World(names).network())
    job = call(pipe, "http://api.example.com", max_retries=1)
    assert message_of(job).startswith("POST http://api.example.com failed: ")
    assert job.attempts == 2


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for api.example.com that nobody has signed, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    name = ["-subj", "/CN=api.example.com", "-addext", "subjectAltName=DNS:api.example.com"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(file)]
    made = subprocess.run(
        ["openssl", "req", "-x509", *key, *name, "-days", "2"], check=True, capture_output=True
    )
    file.write_bytes(file.read_bytes() + made.stdout)
    return file


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_tls_is_spoken_with_the_name_of_the_url(certificate: Path, server_tls: ssl.SSLContext) -> None:
    with Canary(tls=server_tls) as canary:
        world = World({"api.example.com": [PUBLIC]}, {PUBLIC: canary.port})
        trusting = ssl.create_default_context(cafile=str(certificate))
        pipe = pipe_for("https://api.example.com", network=world.network(trusting))
        assert result_of(call(pipe, "https://api.example.com/x"))["body"] == "tweet"


@pytest.mark.parametrize(
    ("host", "is_trusted", "problem"),
    [("www.example.com", True, "Hostname mismatch"), ("api.example.com", False, "self.signed certificate")],
)
def test_a_certificate_that_is_wrong_is_refused(
    certificate: Path, server_tls: ssl.SSLContext, host: str, is_trusted: bool, problem: str
) -> None:
    with Canary(tls=server_tls) as canary:
        world = World({host: [PUBLIC]}, {PUBLIC: canary.port})
        trusting = ssl.create_default_context(cafile=str(certificate) if is_trusted else None)
        pipe = pipe_for(f"https://{host}", network=world.network(trusting))
        message = message_of(call(pipe, f"https://{host}/x"))
    assert "SSLCertVerificationError" in message
    assert re.search(problem, message)
    assert canary.requests == []


def test_a_tls_server_that_never_greets_is_left_at_the_deadline() -> None:
    with Canary() as canary:
        pipe = pipe_for(canary.origin.replace("http:", "https:"))
        canary.respond = canary.hold
        job = call(pipe, canary.origin.replace("http:", "https:"), deadline=0.2)
    assert job.error is not None
    assert job.error.type == "DeadlineExceeded"


# The real network


def test_the_real_network_looks_names_up_and_connects_to_addresses() -> None:
    with Canary() as canary, connect(ip_address("127.0.0.1"), canary.port, 5) as connection:
        assert connection.getpeername() == ("127.0.0.1", canary.port)
    assert "127.0.0.1" in Network().resolve("localhost")


# A check of one's own


def test_a_check_refuses_what_no_model_can_say() -> None:
    """When the job is put in, and for good at the run."""
    pipe = Jobpipe("memory://")
    allowed = {"a", "b"}

    def check(payload: Any) -> None:
        if payload not in allowed:
            raise BadInputError("payload", f"must be one of {sorted(allowed)}")

    @pipe.job("letter", check=check)
    async def letter(payload):  # type: ignore[no-untyped-def]
        return payload

    async def scenario() -> None:
        async with pipe:
            with pytest.raises(BadInputError, match="must be one of"):
                await letter.enqueue("c")
            await letter.enqueue("a", id="a")
            await letter.enqueue("b", id="b")
            allowed.remove("b")
            async with pipe.running():
                assert (await finished(pipe, "a")).result == "a"
                refused = await finished(pipe, "b")
        assert (refused.status, refused.attempts) == (JobStatus.FAILED, 1)

    run(scenario())
