"""Several services and workers on one store are one: what is said to one holds for all, and all see what any does."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx

from ..support.waiting import LIMIT, eventually
from .programs import Program, Start


@contextmanager
def stories_of(service: Program) -> Iterator[dict[str, list[str]]]:
    """What its stream of events tells of each job, from now on."""
    stories: dict[str, list[str]] = {}
    is_open = threading.Event()

    def read(lines: Iterator[str]) -> None:
        is_open.set()
        try:
            for line in lines:
                if line.startswith("data: ") and "id" in (event := json.loads(line[6:])):
                    stories.setdefault(event["id"], []).append(event["status"])
        except httpx.TransportError:
            pass  # it was closed

    with service.http.stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        next(lines)  # it is there
        reader = threading.Thread(target=read, args=[lines])
        reader.start()
        assert is_open.wait(LIMIT)
        try:
            yield stories
        finally:
            service.kill()
            reader.join(LIMIT)


def test_capacity_is_that_of_all_services_together(durable: Start) -> None:
    services = [durable.serve("--workers", "0", "--queue-size", "50") for _ in range(2)]

    def send(n: int) -> int:
        return services[n % 2].call("POST", "/enqueue", {"type": "mark", "payload": n}).status_code

    for service in services:
        service.get("/stats")
    with ThreadPoolExecutor(8) as senders:
        answers = Counter(senders.map(send, range(120)))
    assert answers == {202: 50, 503: 70}
    assert [service.get("/stats")["queued"] for service in services] == [50, 50]


def test_job_that_is_sent_to_two_services_at_once_is_one(durable: Start) -> None:
    services = [durable.serve("--workers", "0") for _ in range(2)]

    def send(n: int) -> int:
        job = {"id": f"j{n // 4}", "type": "mark", "payload": n // 4}
        return services[n % 2].call("POST", "/enqueue", job).status_code

    with ThreadPoolExecutor(8) as senders:
        answers = Counter(senders.map(send, range(160)))
    assert answers == {202: 40, 200: 120}
    assert len(durable.jobs()) == 40


def test_queue_that_is_paused_at_one_service_rests_at_all(durable: Start) -> None:
    one, two = (durable.serve() for _ in range(2))
    durable.worker()
    one.post("/queues/slow/pause")
    held = [each.enqueue("mark", queue="slow") for each in (one, two)]
    free = [each.enqueue("mark") for each in (one, two)]
    one.all_done(free)
    assert {two.job(id)["status"] for id in held} == {"queued"}
    two.post("/queues/slow/resume")
    one.all_done(held)


def test_every_service_tells_what_happens_at_any(durable: Start) -> None:
    """The jobs are put in at two services, and run by a worker of its own."""
    one, two = (durable.serve("--workers", "0") for _ in range(2))
    with stories_of(one) as first, stories_of(two) as second:
        durable.worker()
        ids = [each.enqueue("mark", n) for n in range(10) for each in (one, two)]
        life = {id: ["queued", "running", "done"] for id in ids}
        eventually(lambda: first == second == life, lambda: (first, second))
