"""A real service for each store: the real command in a process of its own, with something in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..faults.programs import Program, Start

STORES = ("memory://", "sqlite:///jobs.db")
"""What everything here runs on; another store is another row."""
JOBS = ("waiting", "done", "failed")
SCHEDULE = "hourly"


def put_schedule(service: Program) -> None:
    answer = service.call("PUT", f"/schedules/{SCHEDULE}", {"type": "echo", "every": 3_600})
    assert answer.status_code == 200


@pytest.fixture(scope="session", params=STORES, ids=lambda url: url.partition(":")[0])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One that has jobs in several states, named after them, and a schedule."""
    start = Start(tmp_path_factory.mktemp("service"))
    try:
        service = start.plain("--store", request.param, "--queue-size", "0")
        service.enqueue("echo", id="waiting", delay=86_400)
        service.finished(service.enqueue("echo", [1], id="done"))
        service.finished(service.enqueue("fail", "no", id="failed", max_retries=0))
        put_schedule(service)
        yield service
        assert service.process.poll() is None
        assert "ERROR" not in service.output
    finally:
        start.close()


@pytest.fixture(scope="session", params=["memory"])  # Why with a name: so that each test has its own
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One that wants a token."""
    start = Start(tmp_path_factory.mktemp("guarded"))
    try:
        yield start.plain("--store", "memory://", "--token", "geheim")
    finally:
        start.close()
