"""Processes that are killed: what was accepted is run, and each job has one outcome."""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime

import httpx
import pytest

from ..support.waiting import eventually
from .programs import Start, is_one_outcome, jobpipe

LEASE = "0.5"


@pytest.mark.real
@pytest.mark.parametrize("is_group", [False, True], ids=["the supervisor", "all processes"])
def test_jobs_that_were_accepted_before_a_crash_run_once_after_it(durable: Start, is_group: bool) -> None:
    """Fault 10: killed between 202 and the run."""
    service = durable.serve("--workers", "0")
    ids = [service.enqueue("mark", n) for n in range(30)]
    batch = {"jobs": [{"id": f"b{n}", "type": "mark", "payload": n} for n in range(30)]}
    assert service.http.post("/enqueue/batch", json=batch).status_code == 202
    ids += [f"b{n}" for n in range(30)]
    if is_group:
        os.killpg(service.pid, signal.SIGKILL)
    service.kill()

    service = durable.serve()
    for job in service.all_done(ids):
        assert (job["attempts"], len(job["history"])) == (1, 1)
    assert sorted(id for id, _, _ in durable.runs()) == sorted(ids)
    assert service.get("/stats")["done"] == len(ids)


def test_a_paused_queue_is_still_paused_after_a_crash_and_its_jobs_run_when_it_is_resumed(
    durable: Start,
) -> None:
    """Fault 10: what was said to the service is as durable as its jobs."""
    service = durable.serve()
    service.post("/queues/default/pause")
    ids = [service.enqueue("mark", n) for n in range(5)]
    service.kill_child()
    assert service.get(f"/jobs/{ids[0]}/explain")["reason"] == "paused"
    service.post("/queues/default/resume")
    assert all(job["attempts"] == 1 for job in service.all_done(ids))


def test_who_waits_for_a_job_is_told_that_it_is_in_when_the_service_is_killed(start: Start) -> None:
    service = start.serve()
    client = start.command(jobpipe("enqueue", "hold", "--wait", "--url", service.url))
    ((id, _, _),) = eventually(start.runs)
    service.kill()
    assert client.code() == 1
    assert f"error: the job {id} is enqueued, but waiting for it failed" in client.output


@pytest.mark.real
def test_a_job_whose_process_is_killed_runs_again(durable: Start) -> None:
    """Fault 9: within lease + poll, attempt 2, one final outcome."""
    service = durable.serve("--workers", "0", "--lease", LEASE)
    worker = durable.worker("--lease", LEASE)
    id = service.enqueue("hold")
    durable.begun(id)
    other = durable.worker("--lease", LEASE)
    killed_at = time.time()
    worker.kill()
    second = durable.begun(id, attempt=2)
    durable.let_go()
    job = service.finished(id)
    assert (job["status"], job["attempts"], job["result"]) == ("done", 2, second)
    assert second == other.child()
    assert [run["number"] for run in job["history"]] == [1, 2]
    lost, done = job["history"]
    assert (lost["error"]["type"], lost["error"]["message"]) == ("WorkerLost", "worker lost")
    assert done["error"] is None
    assert job["error"] is None
    wait = datetime.fromisoformat(done["began_at"]).timestamp() - killed_at
    assert wait < float(LEASE) + 1.0 + 3.0  # the lease, the poll, and a machine that is busy


def test_every_accepted_job_is_done_whenever_a_process_is_killed(durable: Start) -> None:
    """Fault 10: at random points, under load; the child three times, then the whole service."""
    service = durable.serve("--lease", LEASE)
    ids = [f"j{n}" for n in range(200)]
    moments = sorted(random.Random(10).sample(range(10, 150), 4))
    with ThreadPoolExecutor(4) as senders:
        sending = senders.map(service.accept, ids)
        for moment in moments[:3]:
            eventually(lambda moment=moment: len(durable.runs()) >= moment)  # type: ignore[misc]
            service.kill_child()
        eventually(lambda: len(durable.runs()) >= moments[3])
        service.kill()
        service = durable.serve("--lease", LEASE, "--port", str(service.port))
        list(sending)  # all have their answer, and raise what they met
    jobs = service.all_done(ids)
    assert all(map(is_one_outcome, jobs))
    assert {id for id, _, _ in durable.runs()} == set(ids)
    stats = service.get("/stats")
    assert (stats["done"], stats["queued"], stats["running"], stats["failed"]) == (200, 0, 0, 0)


def test_an_enqueue_whose_answer_was_lost_is_sent_again_and_is_one_job(durable: Start) -> None:
    """Fault 12: the connection is cut before the answer is read."""
    check_lost_answers(durable)


def test_an_enqueue_in_memory_whose_answer_was_lost_is_one_job_as_well(start: Start) -> None:
    """Fault 12, on memory://."""
    start.env["JOBPIPE_STORE"] = "memory://"
    check_lost_answers(start)


def check_lost_answers(start: Start) -> None:
    service = start.serve()
    ids = [f"j{n}" for n in range(20)]
    for n, id in enumerate(ids):
        body = b'{"id":"%s","type":"mark","payload":"%s"}' % (id.encode(), id.encode())
        head = (
            f"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            connection.sendall(head.encode() + body)
            if n % 2:  # the answer is on its way; else the request itself may be
                connection.recv(1, socket.MSG_PEEK)
            # Closed with a reset: nothing that was not sent yet will be.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    for n, id in enumerate(ids):
        answer = service.http.post("/enqueue", json={"id": id, "type": "mark", "payload": id})
        assert answer.status_code in ((200,) if n % 2 else (200, 202)), answer.text
    assert all(job["attempts"] == 1 for job in service.all_done(ids))
    assert sorted(id for id, _, _ in start.runs()) == sorted(ids)


@pytest.mark.real
def test_a_poison_job_fails_at_its_last_attempt_and_others_flow(durable: Start) -> None:
    """Fault 15."""
    service = durable.serve("--lease", LEASE)
    first = [service.enqueue("mark", n) for n in range(10)]
    poison = "p"
    service.call("POST", "/enqueue", {"id": poison, "type": "poison"})  # its answer may die with the process
    second: list[str] = []
    for n in range(10):
        second.append(f"late{n}")
        service.accept(second[-1])
    job = service.finished(poison)
    assert (job["status"], job["attempts"]) == ("failed", 2)
    assert job["error"] == {"type": "WorkerLost", "message": "worker lost", "traceback": None}
    crashes = len(durable.runs(poison))
    assert crashes in (2, 3)  # Why 3: to be lost while it was claimed ahead costs no attempt, once
    for done in [service.finished(id) for id in first + second]:
        assert done["status"] == "done"
        assert is_one_outcome(done)
    assert service.get("/health") == {"status": "ok"}
    assert service.output.count("ended with code 1; starting another") == crashes
    eventually(lambda: durable.failures(poison) == ["WorkerLost"])


def test_a_failed_job_is_told_again_if_the_process_dies_while_it_is_told(durable: Start) -> None:
    """The failure is recorded after that: so the job counts as lost, and who finds it tells."""
    service = durable.serve("--lease", LEASE)
    service.call("POST", "/enqueue", {"id": "d", "type": "doomed"})
    job = service.finished("d")
    assert (job["status"], job["error"]["type"]) == ("failed", "WorkerLost")
    eventually(lambda: durable.failures("d") == ["ValueError", "WorkerLost"])


def test_a_poison_job_among_many_that_were_claimed_ahead_costs_only_what_has_begun(durable: Start) -> None:
    """Fault 48."""
    slots = 2
    service = durable.serve("--lease", LEASE, "--workers", "0")
    jobs: list[dict[str, object]] = [{"id": f"j{n}", "type": "mark", "payload": n} for n in range(900)]
    jobs.insert(600, {"id": "poison", "type": "poison"})
    assert service.http.post("/enqueue/batch", json={"jobs": jobs}).status_code == 202
    worker = durable.command(jobpipe("worker", "app:pipe", "--lease", LEASE, "--workers", str(slots)))
    job = service.finished("poison")
    assert (job["status"], job["attempts"]) == ("failed", 2)
    others = service.all_done([f"j{n}" for n in range(900)])
    crashes = worker.output.count("ended with code 1; starting another")
    assert crashes == len(durable.runs("poison"))
    assert sum(other["attempts"] - 1 for other in others) <= slots * crashes


def test_a_poison_job_in_memory_takes_the_jobs_with_it_but_not_the_service(start: Start) -> None:
    """Fault 15, on memory://: what it held is gone with its process."""
    service = start.serve("--store", "memory://")
    first = service.child()
    held = service.enqueue("mark", delay=60)
    with suppress(httpx.TransportError):  # the answer may die with the process
        service.enqueue("poison")
    eventually(lambda: service.children() not in ([], [first]))
    assert service.call("GET", f"/jobs/{held}").status_code == 404
    assert service.finished(service.enqueue("mark", 1))["result"] == 1
