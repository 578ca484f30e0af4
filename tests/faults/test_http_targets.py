"""The `http` job type as a way into the network that the service is in: refused before anything is connected."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Job, Jobpipe, JobStatus
from jobpipe.jobtypes.builtin import register_http
from jobpipe.jobtypes.http.address import Address
from jobpipe.jobtypes.http.job import HttpJob
from jobpipe.jobtypes.http.network import Network

from ..support.canary import Canary, answer, redirect
from .programs import Program, Start, jobpipe
from .test_attacks import plant

PUBLIC = "93.184.216.34"
"""Stands for any public address: nothing is ever connected to it."""
PRIVATE = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1", "ff02::1"),
    *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"),
]


@pytest.fixture
def canary() -> Iterator[Canary]:
    """What must not be reached."""
    with Canary() as canary:
        yield canary


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBPIPE_HTTP_TARGETS", raising=False)
    monkeypatch.chdir(tmp_path)


def serve(start: Start, *targets: str) -> Program:
    """The real command with the built-in types, as an operator starts it."""
    chosen = ["--http-targets", ",".join(targets)] if targets else []
    return start.command(jobpipe("serve", "--port", "0", "--store", "sqlite:///jobs.db", *chosen))


def enqueue(service: Program, url: str, **fields: Any) -> Any:
    return service.call("POST", "/enqueue", {"type": "http", "payload": {"url": url}, **fields})


def is_refused(service: Program, url: str) -> bool:
    """422, naming the field, and nothing is stored?"""
    found = enqueue(service, url, id="refused")
    assert found.status_code == 422, found.text
    assert service.call("GET", "/jobs/refused").status_code == 404
    return bool(found.json()["field"] == "payload.url")


# Over HTTP, against the real service


def test_the_type_is_off_until_targets_are_listed(start: Start, canary: Canary) -> None:
    service = serve(start)
    found = enqueue(service, canary.origin)
    assert found.status_code == 422
    assert found.json()["field"] == "type"
    assert "JOBPIPE_HTTP_TARGETS must list" in found.json()["detail"]
    batch = {"jobs": [{"type": "echo"}, {"type": "http", "payload": {"url": canary.origin}}]}
    found = service.call("POST", "/enqueue/batch", batch)
    assert (found.status_code, found.json()["field"]) == (422, "jobs[1].type")
    schedule = {"type": "http", "payload": {"url": canary.origin}, "every": 1}
    assert service.call("PUT", "/schedules/sneak", schedule).status_code == 422
    assert canary.connections == 0


def test_a_listed_address_is_called_and_all_others_are_refused(start: Start, canary: Canary) -> None:
    """Fault 34, by address: in whatever spelling."""
    with Canary() as friend:
        service = serve(start, "https://*.example.com", friend.origin)
        job = service.finished(service.enqueue("http", {"url": f"{friend.origin}/hook", "body": {"n": 1}}))
        assert (job["status"], job["result"]) == ("done", {"status": 200, "body": "tweet"})
        assert friend.requests[0].body == b'{"n":1}'
        hosts = [
            *(
                "127.0.0.1",
                "localhost",
                "LOCALHOST.",
                "127.0.0.1.",
                "127.1",
                "2130706433",
                "0x7f000001",
                "0177.0.0.1",
            ),
            *(
                "[::1]",
                "[::ffff:127.0.0.1]",
                "[::ffff:7f00:1]",
                "[::127.0.0.1]",
                "0.0.0.0",
                "0",
                "\uff11\uff12\uff17.1",
            ),
            *("example.com", "127.0.0.1.example.com.evil.example", f"a.example.com@127.0.0.1:{canary.port}#"),
            *(
                f"127.0.0.1:{canary.port}\\.example.com",
                f"127.0.0.1:{canary.port}?.example.com",
                "169.254.169.254",
            ),
        ]
        for host in hosts:
            assert is_refused(service, f"http://{host}:{canary.port}/"), host
            assert is_refused(service, f"https://{host}:{canary.port}/"), host
        assert friend.connections == 1
    assert canary.connections == 0


def test_a_listed_name_of_this_machine_is_not_called(start: Start, canary: Canary) -> None:
    """Fault 34, by name: the error says what to list in its place."""
    service = serve(start, f"http://localhost:{canary.port}")
    job = service.finished(service.enqueue("http", {"url": f"http://localhost:{canary.port}/?key=hunter2"}))
    assert (job["status"], job["attempts"], canary.connections) == ("failed", 1, 0)
    assert f"list http://127.0.0.1:{canary.port}" in job["error"]["message"].replace("[::1]", "127.0.0.1")
    assert "hunter2" not in service.output + job["error"]["message"] + job["error"]["traceback"]


def test_a_redirect_beyond_the_list_is_not_followed(start: Start, canary: Canary) -> None:
    """Fault 34, by redirect: no retry either."""
    places = [
        *(f"{canary.origin}/", f"//127.0.0.1:{canary.port}/", f"http://localhost:{canary.port}/"),
        *(f"http://2130706433:{canary.port}/", f"http://[::ffff:127.0.0.1]:{canary.port}/"),
        *(f"http://x@127.0.0.1:{canary.port}/", f"https://127.0.0.1:{canary.port}/", "file:///etc/passwd"),
    ]
    with Canary(lambda request: redirect(places[int(request.line.split("/")[1].split()[0])], 307)) as friend:
        service = serve(start, friend.origin)
        for number, place in enumerate(places):
            job = service.finished(service.enqueue("http", {"url": f"{friend.origin}/{number}"}))
            assert (job["status"], job["attempts"]) == ("failed", 1), place
            assert job["error"]["message"].startswith("payload.url was redirected to "), place
        assert friend.connections == len(places)
    assert canary.connections == 0


def test_what_was_planted_in_the_store_is_checked_at_the_run(start: Start, canary: Canary) -> None:
    """Also where the service that runs it allows less than the one that took it."""
    service = serve(start, "https://api.example.com")
    service.get("/stats")  # by now the tables are there
    plant(start, "planted", "http", f'{{"url":"{canary.origin}"}}')
    job = service.finished("planted")
    assert (job["status"], job["attempts"], canary.connections) == ("failed", 1, 0)
    assert "is not listed in JOBPIPE_HTTP_TARGETS" in job["error"]["message"]


def test_a_wrong_entry_stops_the_start(start: Start) -> None:
    service = serve(start, "https://api.example.com", "https://api.example.com/path")
    assert service.code() == 2
    assert service.output.count("\n") == 1
    assert "--http-targets must be" in service.output
    assert "'https://api.example.com/path'" in service.output


def test_a_stop_does_not_wait_for_a_server_that_does_not_answer(start: Start) -> None:
    with Canary() as friend:
        friend.respond = friend.hold
        service = start.command(
            jobpipe("serve", "--port", "0", "--http-targets", friend.origin, "--grace", "0.2")
        )
        id = service.enqueue("http", {"url": friend.origin})
        assert friend.asked.wait(30)
        service.signal(2)
        assert service.code() == 0
        friend.respond = lambda _: answer(200, "at last")
        again = start.command(jobpipe("serve", "--port", "0", "--http-targets", friend.origin))
        job = again.finished(id)
        assert (job["status"], job["attempts"], job["result"]["body"]) == ("done", 1, "at last")


# With names of the test's own


class Liar:
    """Looks names up as it was told, an answer for each time; and leads every connection to the canary, noting it."""

    def __init__(self, canary: Canary, *answers: Sequence[str]) -> None:
        self._port = canary.port
        self._answers = list(answers)
        self.reached: list[str] = []

    def resolve(self, host: str) -> Sequence[str]:
        return self._answers.pop(0)

    def connect(self, address: Address, port: int, timeout: float) -> socket.socket:
        self.reached.append(str(address))
        return socket.create_connection(("127.0.0.1", self._port), timeout)


def call(liar: Liar, url: str) -> Job:
    """Call it with the liar's network, where two names are listed."""
    pipe = Jobpipe("memory://", http_targets=["http://api.example.com", "http://*.rebound.example"])
    register_http(pipe.job, HttpJob(lambda: pipe.settings.http_targets, Network(liar.resolve, liar.connect)))

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await pipe.enqueue("http", {"url": url})
            job = await pipe.wait(receipt.id)
            assert job.is_finished
            return job

    return asyncio.run(scenario())


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_within_is_refused(canary: Canary, address: str) -> None:
    """Fault 34: also where only one of its addresses does."""
    for answers in ([address], [PUBLIC, address]):
        job = call(Liar(canary, answers), "http://api.example.com/")
        assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
        assert job.error is not None
        assert "is not public" in job.error.message
    assert canary.connections == 0


def test_a_name_that_changes_is_connected_to_where_it_was_checked(canary: Canary) -> None:
    """Fault 34, by rebinding: what the name leads to a moment later is not looked at."""
    liar = Liar(canary, [PUBLIC], ["127.0.0.1"], ["127.0.0.1"])
    assert call(liar, "http://api.example.com/").status is JobStatus.DONE
    assert liar.reached == [PUBLIC]


def test_a_name_that_changes_between_two_requests_is_refused_at_the_second(canary: Canary) -> None:
    """A redirect to itself makes the name be looked up again."""
    canary.respond = lambda _: redirect("/again")
    liar = Liar(canary, [PUBLIC], ["169.254.169.254"])
    job = call(liar, "http://api.example.com/")
    assert (job.status, job.attempts, liar.reached) == (JobStatus.FAILED, 1, [PUBLIC])
    assert canary.connections == 1


def test_a_redirect_to_a_listed_name_that_leads_within_is_refused(canary: Canary) -> None:
    canary.respond = lambda _: redirect("http://in.rebound.example/")
    liar = Liar(canary, [PUBLIC], ["10.0.0.1"])
    job = call(liar, "http://api.example.com/")
    assert (job.status, job.attempts, liar.reached) == (JobStatus.FAILED, 1, [PUBLIC])
    assert canary.connections == 1
