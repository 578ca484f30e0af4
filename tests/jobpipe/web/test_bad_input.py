"""Bad bodies, wrong paths and methods: the second table of the contract."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import pytest

from jobpipe import Jobpipe
from jobpipe.errors import StoreAwayError
from jobpipe.web.app import make_app

from ...support.servers_redis import with_own_keys
from ...support.waiting import until
from .conftest import Caller, problem, run


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"data",
        b'{"id":"a","id":"b"}',
        b'{"payload":{"a":1,"a":1}}',
        b'{"payload":NaN}',
        b'{"payload":-Infinity}',
        b'{"payload":1e999}',
        b'{"payload":' + b"[" * 64 + b"]" * 64 + b"}",
        b'{"payload":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
        b"[" * 20_000,
        b'{"payload":"\xff"}',
        b'\xef\xbb\xbf{"id":"a"}',
        b"\x80\x04\x95.",
        b'{"payload":' + b"9" * 5_000 + b"}",
    ],
    ids=lambda raw: repr(raw[:24]),
)
def test_what_is_no_json_is_refused(on_memory: Any, raw: bytes) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/enqueue", "/enqueue/batch", "/jobs/cancel"):
            problem(await call.post(path, raw), 400)

    on_memory(scenario)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"[]", "the body"),
        (b'"x"', "the body"),
        (b'{"nope":1}', "nope"),
        (b'{"id":""}', "id"),
        (b'{"id":7}', "id"),
        (b'{"id":null}', "id"),
        (b'{"id":"a b"}', "id"),
        (b'{"id":"-a"}', "id"),
        (b'{"id":"a\\n"}', "id"),
        (b'{"id":"\\ud800"}', "id"),
        (b'{"id":"' + b"x" * 201 + b'"}', "id"),
        (b'{"type":"' + b"x" * 101 + b'"}', "type"),
        (b'{"type":"os.system;"}', "type"),
        (b'{"queue":"a\\u0000"}', "queue"),
        (b'{"max_retries":-1}', "max_retries"),
        (b'{"max_retries":101}', "max_retries"),
        (b'{"max_retries":true}', "max_retries"),
        (b'{"max_retries":"3"}', "max_retries"),
        (b'{"priority":1001}', "priority"),
        (b'{"priority":0.5}', "priority"),
        (b'{"deadline":0}', "deadline"),
        (b'{"deadline":86401}', "deadline"),
        (b'{"delay":-1}', "delay"),
        (b'{"delay":1,"run_at":"2030-01-01T00:00:00Z"}', "delay"),
        (b'{"run_at":"2030-01-01T00:00:00"}', "run_at"),
        (b'{"run_at":"tomorrow"}', "run_at"),
        (b'{"run_at":"9999-12-31T23:59:59.999999Z"}', "run_at"),
        (b'{"run_at":"0001-01-01T00:00:00+23:59"}', "run_at"),
        (b'{"expires_at":"2030-01-01T00:00:00"}', "expires_at"),
        (b'{"expires_in":-1}', "expires_in"),
        (b'{"expires_in":1,"expires_at":"2030-01-01T00:00:00Z"}', "expires_in"),
        (b'{"unique":"a b"}', "unique"),
        (b'{"on_duplicate":"keep"}', "on_duplicate"),
        (b'{"unique":"a","on_duplicate":"drop"}', "on_duplicate"),
        (b'{"max_wait":5}', "max_wait"),
        (b'{"tags":"a"}', "tags"),
        (b'{"tags":["1","2","3","4","5","6","7","8","9","10","11"]}', "tags"),
        (b'{"tags":[""]}', "tags[0]"),
        (b'{"tags":["\\u0000"]}', "tags[0]"),
        (b'{"tags":["\\ud800"]}', "tags[0]"),
        (b'{"payload":"a\\u0000b"}', "payload"),
        (b'{"payload":{"\\ud800":1}}', "payload"),
        (b'{"payload":"\\udfff"}', "payload"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(on_memory: Any, raw: bytes, field: str) -> None:
    async def scenario(call: Caller) -> None:
        found = problem(await call.post("/enqueue", raw), 422)
        assert found["field"] == field
        assert field in found["detail"]
        assert (await call("GET", "/jobs")).json()["jobs"] == []

    on_memory(scenario)


def test_a_key_that_is_no_text_is_refused(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        problem(await call.post("/enqueue", b'{"\\ud800":1}'), 422)

    on_memory(scenario)


@pytest.mark.parametrize(
    "headers",
    [
        {"content_type": "text/plain"},
        {"content_type": "application/x-www-form-urlencoded"},
        {"content_type": "application/json; charset=latin-1"},
        {"content_type": ""},
        {"content_encoding": "gzip"},
        {"content_encoding": "br"},
    ],
)
def test_what_is_not_sent_as_json_is_refused(on_memory: Any, headers: dict[str, str]) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/enqueue", "/enqueue/batch", "/jobs/retry"):
            problem(await call.post(path, b"{}", **headers), 415)

    on_memory(scenario)


def test_json_may_name_its_charset(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        answer = await call.post("/enqueue", b"{}", content_type="Application/JSON; charset=UTF-8")
        assert answer.status_code == 202

    on_memory(scenario)


def test_a_long_payload_is_refused_and_the_longest_is_not() -> None:
    async def scenario(call: Caller) -> None:
        fits = await call("POST", "/enqueue", json={"payload": "x" * 998})
        assert fits.status_code == 202
        found = await call.refused(413, "POST", "/enqueue", json={"payload": "x" * 999})
        assert found["field"] == "payload"
        await call.refused(413, "POST", "/enqueue/batch", json={"jobs": [{"payload": "x" * 999}]})
        spaces = b'{"payload":1}' + b" " * (1_000 + 65_536)
        problem(await call.post("/enqueue", spaces), 413)
        assert (await call.post("/enqueue", spaces[: 1_000 + 65_536])).status_code == 202

    run(scenario, Jobpipe("memory://", max_payload=1_000))


@pytest.mark.parametrize(("path", "limit"), [("/enqueue", 262_144 + 65_536), ("/enqueue/batch", 16 * 2**20)])
def test_a_body_is_not_read_beyond_its_limit(path: str, limit: int) -> None:
    """100 MB in chunks, with and without a Content-Length: refused by the header, or at the first chunk too many."""

    async def post(app: Any, headers: list[tuple[bytes, bytes]]) -> tuple[int, int]:
        taken, status = 0, 0
        chunk = b"x" * 65_536

        async def receive() -> dict[str, Any]:
            nonlocal taken
            taken += len(chunk)
            return {"type": "http.request", "body": chunk, "more_body": taken < 100_000_000}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)

        scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await app(scope, receive, send)
        return status, taken

    async def main() -> None:
        pipe = Jobpipe("memory://")
        app = make_app(pipe)
        common = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        assert await post(app, [*common, (b"content-length", b"100000000")]) == (413, 0)
        tracemalloc.start()
        try:
            status, taken = await post(app, common)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert status == 413
        assert taken <= limit + 65_536
        assert peak < limit + 4_000_000
        pipe.close()

    asyncio.run(main())


def test_unknown_paths_and_wrong_methods_are_told(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/nope", "/jobs/", "/jobs/a/b/c", "/enqueue/", "http://localhost:8080//jobs"):
            await call.refused(404, "GET", path)
        for method, path, allowed in (
            ("GET", "/enqueue", {"POST"}),
            ("PUT", "/jobs/t1", {"DELETE", "GET", "HEAD"}),
            ("PUT", "/jobs/cancel", {"DELETE", "GET", "HEAD", "POST"}),
            ("POST", "/health", {"GET", "HEAD"}),
        ):
            response = await call(method, path)
            problem(response, 405)
            assert set(response.headers["allow"].split(", ")) == allowed

    on_memory(scenario)


def test_head_answers_as_get_without_a_body(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        for path in ("/health", "/jobs", "/stats", "/metrics", "/openapi.json", "/queues", "/events"):
            response = await call("HEAD", path)
            assert (response.status_code, response.content) == (200, b"")

    on_memory(scenario)


def test_a_store_that_is_away_is_a_503_without_its_secrets(
    on_memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(call: Caller) -> None:
        def away(*_: Any, **__: Any) -> Any:
            raise StoreAwayError("postgresql://user:secret@host is away")

        for verb in ("insert", "get", "page", "counts", "last_event", "cancel"):
            monkeypatch.setattr(call.pipe.store, verb, away)
        for method, path in (
            *(
                ("GET", "/jobs/a"),
                ("GET", "/jobs"),
                ("GET", "/stats"),
                ("GET", "/queues"),
                ("GET", "/metrics"),
            ),
            *(("GET", "/readyz"), ("GET", "/events"), ("POST", "/jobs/a/cancel"), ("POST", "/enqueue")),
        ):
            response = await call(method, path, **({"json": {}} if path == "/enqueue" else {}))
            problem(response, 503)
            assert "secret" not in response.text
            assert "retry-after" in response.headers
        assert (await call("GET", "/health")).status_code == 200

    on_memory(scenario)


def test_what_nobody_expected_is_logged_and_not_told(
    on_memory: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(call: Caller) -> None:
        def broken(*_: Any, **__: Any) -> Any:
            raise ZeroDivisionError("inner secret")

        monkeypatch.setattr(call.pipe.store, "get", broken)
        monkeypatch.setattr(call.pipe.store, "insert", broken)
        for response in (await call("GET", "/jobs/a"), await call("POST", "/enqueue", json={})):
            problem(response, 500)
            assert "secret" not in response.text
        assert caplog.text.count("ZeroDivisionError") >= 2

    on_memory(scenario)


def test_a_problem_is_json_whatever_was_sent(on_memory: Any) -> None:
    async def scenario(call: Caller) -> None:
        hostile = '</script>\r\n\x1b[31m"'
        response = await call("POST", "/enqueue", json={hostile: 1})
        assert json.loads(response.text)["field"] == hostile
        assert "\n" not in response.text
        assert "\x1b" not in response.text

    on_memory(scenario)


def test_all_bodies_together_are_bounded_and_small_ones_still_pass() -> None:
    """Fault 40: those beyond are told to come back, and the room comes back with the end of each call."""

    async def main() -> None:
        pipe = Jobpipe("memory://", queue_size=0)
        app = make_app(pipe)
        app.bodies.most, app.bodies.for_small = 300_000, 100_000
        go = asyncio.Event()
        statuses: list[int] = []

        async def post(body: bytes, *, ends: bool) -> None:
            parts = [body]

            async def receive() -> dict[str, Any]:
                if parts:
                    return {"type": "http.request", "body": parts.pop(), "more_body": not ends}
                await go.wait()
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                statuses.extend([message["status"]] if "status" in message else [])

            scope = {"type": "http", "method": "POST", "path": "/enqueue/batch", "query_string": b""}
            headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
            await app({**scope, "headers": headers, "http_version": "1.1"}, receive, send)

        large = [asyncio.create_task(post(b" " * 90_000, ends=False)) for _ in range(2)]
        await until(lambda: app.bodies.in_hand == 180_000)
        await post(b" " * 90_000, ends=False)
        assert statuses == [503]
        await post(b'{"jobs":[{}]}', ends=True)
        assert statuses == [503, 202]
        assert app.bodies.in_hand == 180_000
        go.set()
        await asyncio.gather(*large)
        assert app.bodies.in_hand == 0
        await asyncio.to_thread(pipe.close)

    asyncio.run(main())


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres", "redis"])
def test_nothing_is_at_a_path_with_a_nul(store: str, request: pytest.FixtureRequest) -> None:
    """Fault 47: whatever the store would say to it."""
    urls = {"memory": "memory://", "sqlite": "sqlite:///jobs.db"}
    url = urls.get(store) or request.getfixturevalue(f"{store}_url")

    async def scenario(call: Caller) -> None:
        paths = [("GET", "/jobs/{}"), ("POST", "/jobs/{}/cancel"), ("POST", "/queues/{}/pause")]
        paths += [(method, "/schedules/{}") for method in ("GET", "DELETE", "PUT")]
        for method, path in paths:
            body = {"type": "echo", "every": 60} if method == "PUT" else None
            await call.refused(404, method, path.format("a%00b"), json=body)
        await call.refused(404, "GET", "/jobs/a%01b")
        await call.refused(422, "POST", "/queues/a%01b/pause")

    run(scenario, Jobpipe(with_own_keys(url) if store == "redis" else url))
