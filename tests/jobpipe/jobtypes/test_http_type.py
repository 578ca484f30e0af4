"""The built-in type `http`: what it sends, and what is refused where it is enqueued."""

from __future__ import annotations

from typing import Any

import pytest

from jobpipe import BadInputError, Job, Jobpipe, JobStatus

from ...support.canary import Canary, answer
from ...support.jobs import finished
from ...support.waiting import run
from .http_calls import call, message_of, pipe_for, result_of

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
