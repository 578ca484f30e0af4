"""The service on a Redis server that restarts, hangs up, forgets its scripts, is full, or is unfit for it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from ..support.servers_redis import RedisServer, free_port, redis_server
from ..support.waiting import eventually
from .programs import Program, Start, is_one_outcome, jobpipe


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    """One whose disk has what it acknowledged."""
    with redis_server(tmp_path / "redis", appendonly="yes", appendfsync="always") as server:
        yield server


def accept(service: Program, id: str) -> None:
    """Send a job until it is accepted, as a client does that is told to come again."""

    def is_accepted() -> bool:
        answer = service.http.post("/enqueue", json={"id": id, "type": "mark", "payload": id})
        assert answer.status_code in (200, 202, 503), answer.text
        return answer.status_code != 503

    eventually(is_accepted, id)


def warnings(service: Program) -> list[str]:
    """What it says by itself, without what it says to who asks whether it is ready."""
    return [line for line in service.output.splitlines() if re.search("WARNING(?!.*not ready)|ERROR", line)]


def test_several_processes_share_the_jobs(start: Start, server: RedisServer) -> None:
    service = start.serve("--store", server.url, "--processes", "2")
    start.worker("--store", server.url)
    ids = [f"j{n}" for n in range(60)]
    for id in ids:
        service.accept(id)
    service.all_done(ids)
    assert sorted(id for id, _, _ in start.runs()) == sorted(ids)


def test_restart_of_the_server_loses_nothing_and_is_over_soon(start: Start, server: RedisServer) -> None:
    """Fault 16: resumes within five seconds, with a line or two in the log."""
    service = start.serve("--store", server.url)
    for n in range(20):
        accept(service, f"before{n}")
    held = service.enqueue("hold")
    start.begun(held)
    server.stop(is_killed=True)
    eventually(lambda: service.http.get("/readyz").status_code == 503)
    answer = service.http.post("/enqueue", json={"id": "refused", "type": "mark"})
    assert (answer.status_code, answer.json()["title"]) == (503, "The store is unavailable")
    start.let_go()
    time.sleep(1)  # so long it is away: what tries all the time would write, and work, all the time
    said = warnings(service)
    assert 1 <= len(said) <= 5, "\n".join(said)
    server.start()
    began = time.monotonic()
    accept(service, "after")
    assert service.finished("after")["status"] == "done"
    assert time.monotonic() - began < 15  # ten of them for a machine that is busy
    jobs = service.all_done([*(f"before{n}" for n in range(20)), held])
    assert all(len(job["history"]) == job["attempts"] for job in jobs)
    assert service.call("GET", "/jobs/refused").status_code == 404


def test_hang_ups_and_forgotten_scripts_in_the_middle_of_it_lose_nothing(
    start: Start, server: RedisServer
) -> None:
    """Faults 16 and 20."""
    service = start.serve("--store", server.url, "--processes", "2")
    ids = [f"j{n}" for n in range(100)]
    for n, id in enumerate(ids):
        if n % 10 == 0:
            server.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            server.ask("CLIENT", "KILL", "TYPE", "pubsub")
            server.ask("SCRIPT", "FLUSH")
        accept(service, id)
    assert all(is_one_outcome(job) for job in service.all_done(ids))


def test_full_server_is_a_store_that_is_away_for_new_jobs_only(start: Start, server: RedisServer) -> None:
    """Fault 20: refused, not acknowledged; what was accepted runs."""
    service = start.serve("--store", server.url)
    held = service.enqueue("hold")
    start.begun(held)
    waiting = service.enqueue("mark", delay=0.5)
    server.ask("CONFIG", "SET", "maxmemory", "1")
    answer = service.http.post("/enqueue", json={"id": "refused", "type": "mark"})
    assert (answer.status_code, answer.json()["title"]) == (503, "The store is unavailable")
    start.let_go()
    service.all_done([held, waiting])
    for path in ("/stats", "/jobs", "/queues", f"/jobs/{held}", "/readyz"):
        assert service.http.get(path).status_code == 200
    assert service.call("GET", "/jobs/refused").status_code == 404
    server.ask("CONFIG", "SET", "maxmemory", "0")
    service.accept("refused")
    service.all_done(["refused"])


@pytest.mark.parametrize("command", ["check", "serve", "worker"])
def test_evicting_server_is_refused(start: Start, server: RedisServer, command: str) -> None:
    """Fault 20: in one line that says what to do."""
    server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    program = start.command(jobpipe(command, "--store", server.url))
    assert program.code() == 1
    (line,) = [line for line in program.output.splitlines() if "allkeys-lru" in line]
    assert "CONFIG SET maxmemory-policy noeviction" in line
    assert "Traceback" not in program.output


def test_store_that_refuses_a_service_ends_it_with_one_line(start: Start, server: RedisServer) -> None:
    program = start("serve", "--store", f"{server.url}/99")
    assert program.code() == 1
    assert re.fullmatch(r"error: .*DB index is out of range\n", program.output), program.output


def test_check_tells_what_the_server_keeps(start: Start, server: RedisServer) -> None:
    program = start.command(jobpipe("check", "--store", server.url))
    assert program.code() == 0
    assert "on disk before it is acknowledged" in program.output


def test_server_that_is_away_at_the_start_is_waited_for(start: Start, server: RedisServer) -> None:
    server.stop()
    port = free_port()
    service = start("serve", "--store", server.url, "--port", str(port))
    service.line("the store is away, and waited for")
    assert httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 503
    server.start()
    service.accept("late")
    service.all_done(["late"])
    assert service.output.count("waited for") == 1
