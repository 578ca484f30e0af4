"""The built-in type `http` and the network: redirects, names and TLS."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from jobpipe.jobtypes.http.network import Network, connect

from ...support.canary import Canary, Received, answer, redirect
from .http_calls import PUBLIC, World, call, message_of, pipe_for, result_of

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
