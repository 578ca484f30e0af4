"""Stopping by signals, under load."""

from __future__ import annotations

import signal
import time
from collections import Counter

import pytest

from ..support.waiting import eventually
from .programs import Start

GRACE = 1.5

pytestmark = pytest.mark.real


def stop_under_load(start: Start, number: int) -> None:
    service = start.serve("--workers", "6", "--grace", str(GRACE), "--builtins")
    long = [service.enqueue("hold"), service.enqueue("stuck")]
    for id in long:
        start.begun(id)
    short = [service.enqueue("sleep", 1.0) for _ in range(3)]
    eventually(lambda: all(service.job(id)["status"] == "running" for id in short))
    waiting = [service.enqueue("mark", delay=0.5), service.enqueue("mark", delay=3600)]

    signalled_at = time.monotonic()
    service.signal(number)
    eventually(lambda: service.http.get("/readyz").status_code == 503)
    refused = service.http.post("/enqueue", json={"type": "mark", "id": "too-late"})
    assert refused.status_code == 503
    assert refused.json()["title"] == "The service is stopping"
    for path in ("/health", "/jobs", "/stats", *(f"/jobs/{id}" for id in [*long, *short])):
        assert service.http.get(path).status_code == 200
    assert service.code() == 0
    assert (
        time.monotonic() - signalled_at < GRACE + 20
    )  # two of them for the end, the rest for a machine that is busy

    watcher = start.serve("--workers", "0")
    for id in short:
        job = watcher.job(id)
        assert (job["status"], job["attempts"]) == ("done", 1)
    for id in long:
        job = watcher.job(id)
        assert (job["status"], job["attempts"], job["history"]) == ("queued", 0, [])
    assert [watcher.job(id)["attempts"] for id in waiting] == [0, 0]
    assert watcher.call("GET", "/jobs/too-late").status_code == 404
    assert watcher.get("/stats")["running"] == 0
    start.let_go()
    start.worker()
    assert watcher.finished(long[0])["attempts"] == 1
    assert watcher.finished(waiting[0])["attempts"] == 1


def test_sigterm_lets_short_jobs_end_and_gives_long_ones_back(durable: Start) -> None:
    """Fault 25."""
    stop_under_load(durable, signal.SIGTERM)


def test_sigint_lets_short_jobs_end_and_gives_long_ones_back(start: Start) -> None:
    """Fault 25, by Ctrl+C."""
    stop_under_load(start, signal.SIGINT)


def test_end_of_the_terminal_lets_short_jobs_end_and_gives_long_ones_back(start: Start) -> None:
    """Fault 47: SIGHUP as SIGTERM."""
    stop_under_load(start, signal.SIGHUP)


@pytest.mark.parametrize(
    ("store", "first", "second"),
    [("sqlite:///jobs.db", signal.SIGTERM, signal.SIGHUP), ("memory://", signal.SIGINT, signal.SIGTERM)],
)
def test_a_second_signal_ends_it_at_once(start: Start, store: str, first: int, second: int) -> None:
    """Fault 25: exit code 130."""
    service = start.serve("--grace", "60", "--store", store)
    for type in ("hold", "stuck"):
        start.begun(service.enqueue(type))
    service.signal(first)
    eventually(lambda: service.http.get("/readyz").status_code == 503)
    signalled_at = time.monotonic()
    eventually(lambda: time.monotonic() - signalled_at > 0.1)  # two within 50 ms are one
    service.signal(second)
    assert service.code() == 130
    assert time.monotonic() - signalled_at < 20  # a third of the grace
    eventually(lambda: not service.children())


def test_jobs_that_end_just_when_the_grace_does_are_settled_or_given_back(durable: Start) -> None:
    """Fault 25: whichever it is, none is left behind as running, and none has lost an attempt."""
    service = durable.serve("--workers", "150", "--grace", "1", "--lease", "60", "--builtins")
    jobs = [{"type": "sleep", "id": f"s{n}", "payload": 1.1 + n * 0.005} for n in range(150)]
    assert service.http.post("/enqueue/batch", json={"jobs": jobs}).status_code == 202
    eventually(lambda: service.get("/stats")["running"] == 150)
    service.signal(signal.SIGTERM)
    assert service.code() == 0
    found = Counter((str(job.status), job.attempts) for job in durable.jobs().values())
    assert set(found) <= {("done", 1), ("queued", 0)}, found
    assert found.total() == 150


def test_a_worker_that_is_stopped_under_load_gives_back_all_that_it_has_not_begun(durable: Start) -> None:
    """Fault 25: with many short jobs, claimed ahead; each runs once in the end, at its first attempt."""
    service = durable.serve("--workers", "0")
    jobs = [{"type": "mark", "id": f"m{n}", "payload": n} for n in range(1_000)]
    for number in (signal.SIGTERM, signal.SIGINT):
        worker = durable.worker("--lease", "60")
        if number == signal.SIGTERM:
            assert service.http.post("/enqueue/batch", json={"jobs": jobs}).status_code == 202
        eventually(lambda: durable.runs())
        worker.signal(number)
        assert worker.code() == 0
        assert service.get("/stats")["running"] == 0
    durable.worker()
    eventually(lambda: service.get("/stats")["done"] == 1_000)
    found = Counter((job.attempts, len(job.history)) for job in durable.jobs().values())
    assert found == {(1, 1): 1_000}
    assert len(durable.runs()) == 1_000
