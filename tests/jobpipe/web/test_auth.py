"""Who may call: tokens, hosts and origins."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from jobpipe import Jobpipe
from jobpipe.settings import Settings
from jobpipe.web.app import WebApp
from jobpipe.web.auth import Guard, WrongTokens
from jobpipe.web.problems import ForeignHostError

from ...support.waiting import until
from .conftest import Caller, problem, run

PROBES = ("/health", "/livez", "/readyz")


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def with_tokens() -> Jobpipe:
    return Jobpipe("memory://", token="geheim", read_token="lesen")


def test_without_or_with_a_wrong_token_nothing_but_probes_answers() -> None:
    async def scenario(call: Caller) -> None:
        for path in PROBES:
            assert (await call("GET", path)).status_code == 200
        for headers in ({}, bearer("falsch"), {"authorization": "Basic Z2VoZWlt"}, bearer("")):
            for method, path in (
                ("GET", "/jobs"),
                ("POST", "/enqueue"),
                ("GET", "/nope"),
                ("GET", "/events"),
            ):
                response = await call(method, path, headers=headers)
                problem(response, 401)
                assert response.headers["www-authenticate"].startswith("Bearer")
                assert "geheim" not in response.text

    run(scenario, with_tokens())


def test_a_read_token_reads_and_the_token_does_all() -> None:
    async def scenario(call: Caller) -> None:
        assert (await call("GET", "/jobs", headers=bearer("lesen"))).status_code == 200
        await call.refused(403, "POST", "/enqueue", json={}, headers=bearer("lesen"))
        assert (await call("POST", "/enqueue", json={}, headers=bearer("geheim"))).status_code == 202
        assert (await call("GET", "/jobs", headers=bearer("geheim"))).status_code == 200

    run(scenario, with_tokens())


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not() -> None:
    async def scenario(call: Caller) -> None:
        for _ in range(20):
            await call.refused(401, "GET", "/jobs", headers=bearer("falsch"))
        response = await call("GET", "/jobs", headers=bearer("falsch"))
        problem(response, 429)
        assert 1 <= int(response.headers["retry-after"]) <= 60
        assert (await call("GET", "/jobs", headers=bearer("geheim"))).status_code == 200
        assert (await call("GET", "/jobs", headers=bearer("lesen"))).status_code == 200
        await call.refused(401, "GET", "/jobs")

    run(scenario, with_tokens())


def test_each_wrong_token_too_many_is_answered_later_and_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Fault 41: there is one log line for all of them."""
    delays: list[float] = []

    async def slow_down(_: WebApp, delay: float) -> None:
        delays.append(delay)

    monkeypatch.setattr(WebApp, "_slow_down", slow_down)

    async def scenario(call: Caller) -> None:
        for _ in range(20):
            await call.refused(401, "GET", "/jobs", headers=bearer("falsch"))
        assert not delays
        for number in range(30):
            response = await call("GET", "/jobs", headers=bearer("falsch"))
            problem(response, 429)
            assert response.headers["connection"] == "close"
            assert len(delays) == number + 1
        assert delays == sorted(delays)
        assert 0 < delays[0] < 0.1
        assert delays[-1] == 1.0
        assert (await call("GET", "/jobs", headers=bearer("geheim"))).status_code == 200
        assert len(delays) == 30
        assert [record.getMessage() for record in caplog.records] == [
            "refused a wrong token (from 127.0.0.1)"
        ]
        call.app.end_streams()
        (_, last) = [record.getMessage() for record in caplog.records]
        assert "49 times more" in last

    run(scenario, with_tokens())


def test_a_crowd_of_guessers_is_not_made_to_wait_where_others_would_have_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobpipe.web.app._MOST_DELAYED", 2)
    monkeypatch.setattr(WrongTokens, "DELAY", 1_000.0)
    monkeypatch.setattr(WrongTokens, "LONGEST_DELAY", 1_000.0)

    async def scenario(call: Caller) -> None:
        for _ in range(20):
            await call.refused(401, "GET", "/jobs", headers=bearer("falsch"))
        waiting = [asyncio.create_task(call("GET", "/jobs", headers=bearer("falsch"))) for _ in range(2)]
        await until(lambda: call.app._delayed == 2)
        await call.refused(429, "GET", "/jobs", headers=bearer("falsch"))
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert call.app._delayed == 0

    run(scenario, with_tokens())


def test_wrong_tokens_are_forgotten_after_a_minute_and_memory_is_bounded() -> None:
    now = 0.0
    wrong = WrongTokens(lambda: now)
    assert [wrong.count("10.0.0.1") for _ in range(21)] == [*[None] * 20, 60]
    assert wrong.count("10.0.0.2") is None
    now = 60.0
    assert wrong.count("10.0.0.1") is None
    for number in range(WrongTokens.ADDRESSES + 500):
        wrong.count(f"10.1.{number // 256}.{number % 256}")
    assert len(wrong) == WrongTokens.ADDRESSES


def test_all_addresses_of_an_ipv6_network_are_one() -> None:
    wrong = WrongTokens(lambda: 0.0)
    assert [wrong.count(f"2001:db8::{number:x}") for number in range(21)][-1] == 60


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("localhost", True),
        ("LOCALHOST:8080", True),
        ("127.0.0.1:8080", True),
        ("127.9.9.9", True),
        ("[::1]:8080", True),
        ("jobs.example.com", True),
        ("a.example.org:99", True),
        ("example.org", False),
        ("evil.com", False),
        ("localhost.evil.com", False),
        ("evil.com/localhost", False),
        ("user@localhost", False),
        ("localhost:x", False),
        ("10.0.0.1", False),
        ("", False),
    ],
)
def test_only_own_hosts_are_answered(host: str, is_own: bool) -> None:
    async def scenario(call: Caller) -> None:
        for path in PROBES:
            assert (await call("GET", path, headers={"host": host})).status_code == 200
        for _ in range(2):
            response = await call("GET", "/jobs", headers={"host": host})
            if is_own:
                assert response.status_code == 200
            else:
                problem(response, 400)

    run(scenario, Jobpipe("memory://", allowed_hosts=("jobs.example.com", "*.example.org")))


@pytest.mark.parametrize(
    ("host", "origin", "is_own"),
    [
        ("localhost:8080", "http://localhost:8080", True),
        ("LOCALHOST:8080", "http://localhost:8080", True),
        ("localhost", "http://localhost", True),
        ("localhost:80", "http://localhost", True),
        ("[::1]:8080", "http://[::1]:8080", True),
        ("jobs.example.com", "https://jobs.example.com", True),  # a proxy with TLS
        ("jobs.example.com:443", "https://jobs.example.com", True),
        ("jobs.example.com", "http://jobs.example.com", True),
        ("jobs.example.com:8443", "https://jobs.example.com:8443", True),
        ("localhost:8080", "http://localhost:3000", False),
        ("localhost:8080", "http://localhost", False),
        ("localhost", "http://localhost:8080", False),
        ("localhost:8080", "http://127.0.0.1:8080", False),
        ("localhost:8080", "https://jobs.example.com", False),
        ("jobs.example.com", "https://jobs.example.com:8443", False),
        ("jobs.example.com:80", "https://jobs.example.com", False),
        ("localhost:8080", "https://evil.com", False),
        ("localhost:8080", "null", False),
        ("localhost:8080", "file://localhost:8080", False),
        ("localhost:8080", "localhost:8080", False),
        ("localhost:8080", "http://localhost@evil.com", False),
        ("localhost:8080", "http://localhost:x", False),
        ("localhost:8080", "", False),
    ],
)
def test_only_own_pages_may_write(host: str, origin: str, is_own: bool) -> None:
    async def scenario(call: Caller) -> None:
        headers = {"host": host, "origin": origin}
        assert (await call("GET", "/jobs", headers=headers)).status_code == 200
        response = await call("POST", "/enqueue", json={}, headers=headers)
        if is_own:
            assert response.status_code == 202
        else:
            problem(response, 403)

    run(scenario, Jobpipe("memory://", allowed_hosts=("jobs.example.com",)))


@pytest.mark.parametrize(("host", "is_own"), [(b"10.0.0.7", True), (b"10.0.0.8", False), (b"name", False)])
def test_who_listens_everywhere_is_known_by_the_address_that_was_called(host: bytes, is_own: bool) -> None:
    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/jobs", "headers": [(b"host", host)]}
    scope["server"] = ("10.0.0.7", 8080)
    guard = Guard(Settings(host="0.0.0.0"))
    if is_own:
        guard.check(scope)
    else:
        with pytest.raises(ForeignHostError):
            guard.check(scope)
