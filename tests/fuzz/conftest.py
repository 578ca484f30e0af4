"""A real service for each store: the real command in a process of its own, with something in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from ..faults.programs import Program, Start

STORES = ("memory://", "sqlite:///jobs.db")
"""What everything here runs on; another store is another row."""
JOBS = ("waiting", "done", "failed")
SCHEDULE = "hourly"


def put_schedule(service: Program) -> None:
    answer = service.call("PUT", f"/schedules/{SCHEDULE}", {"type": "echo", "every": 3_600})
    assert answer.status_code == 200


@contextmanager
def serving(folder: Path, store: str) -> Iterator[Program]:
    """One that has jobs in several states, named after them, and a schedule."""
    start = Start(folder)
    try:
        service = start.plain("--store", store, "--queue-size", "0")
        service.enqueue("echo", id="waiting", delay=86_400)
        service.finished(service.enqueue("echo", [1], id="done"))
        service.finished(service.enqueue("fail", "no", id="failed", max_retries=0))
        put_schedule(service)
        yield service
        assert service.process.poll() is None
        errors = [line for line in service.output.splitlines() if "ERROR" in line]
        assert not [
            line for line in errors if " ERROR jobpipe.jobs " not in line
        ]  # these tell of jobs that failed
    finally:
        start.close()


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Program]]:
    """One on each store."""
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp
        yield {store: stack.enter_context(serving(folder("service"), store)) for store in STORES}


@pytest.fixture(params=STORES, ids=lambda url: url.partition(":")[0])
def service(request: pytest.FixtureRequest, services: dict[str, Program]) -> Program:
    return services[request.param]


@pytest.fixture(scope="session", params=["memory"])  # Why with a name: so that each test has its own
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """One that wants a token."""
    start = Start(tmp_path_factory.mktemp("guarded"))
    try:
        yield start.plain("--store", "memory://", "--token", "geheim")
    finally:
        start.close()
