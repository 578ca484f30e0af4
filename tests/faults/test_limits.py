"""Limits hold for all processes on a store together: nobody's start is one too many."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from .programs import Start

APP = """
import asyncio, os, time
from jobpipe import Jobpipe, current_job

pipe = Jobpipe(port=0, lease=2, grace=1, queue_size=0, workers=8)

def note(what):
    file = os.open("seen", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, f"{time.monotonic()} {what} {os.getpid()}\\n".encode())  # in one piece
    os.close(file)

@pipe.job("paced", rate="40/s")
async def paced():
    note("start")

@pipe.job("few", concurrency=3)
async def few():
    note("enter")
    await asyncio.sleep(0.01)
    note("leave")

@pipe.job("alone", concurrency=1, key=lambda customer: customer)
async def alone(customer: str):
    note(f"enter-{customer}")
    await asyncio.sleep(0.005)
    note(f"leave-{customer}")
"""


@pytest.fixture
def limited(durable: Start) -> Start:
    (durable.folder / "limited.py").write_text(APP)
    return durable


def seen(folder: Path) -> list[tuple[float, str, int]]:
    """When, what and where; the clock is that of the machine."""
    rows = [line.split() for line in (folder / "seen").read_text().splitlines()]
    return sorted((float(at), what, int(pid)) for at, what, pid in rows)


def work_through(start: Start, *jobs: dict[str, str]) -> None:
    """Three processes work through jobs that come all at once."""
    serve = start.serve("limited:pipe", "--workers", "0")
    for worker in [start("worker", "limited:pipe") for _ in range(3)]:
        worker.line("working")
    answer = serve.call("POST", "/enqueue/batch", {"jobs": list(jobs)})
    assert answer.status_code == 202, answer.text
    serve.all_done(job["id"] for job in answer.json()["jobs"])


def test_rate_is_kept_by_three_processes_together(limited: Start) -> None:
    """In no window do more start than the rate allows, but for the lateness of a busy machine."""
    work_through(limited, *({"type": "paced"} for _ in range(80)))
    starts = [at for at, _, _ in seen(limited.folder)]
    assert len(starts) == 80
    told = sorted(job.started_at.timestamp() for job in limited.jobs().values() if job.started_at)
    assert min(later - earlier for earlier, later in pairwise(told)) > 1 / 40 - 1e-4
    assert starts[-1] - starts[0] > 79 / 40 - 0.25


def test_concurrency_is_never_exceeded_by_three_processes(limited: Start) -> None:
    work_through(limited, *({"type": "few"} for _ in range(60)))
    running, most = 0, 0
    for _, what, _ in seen(limited.folder):
        running += 1 if what == "enter" else -1
        most = max(most, running)
    assert (running, most) == (0, 3)


def test_each_key_runs_alone_over_three_processes(limited: Start) -> None:
    work_through(limited, *({"type": "alone", "payload": "abcd"[n % 4]} for n in range(60)))
    inside: set[str] = set()
    for _, what, _ in seen(limited.folder):
        way, _, customer = what.partition("-")
        if way == "enter":
            assert customer not in inside
            inside.add(customer)
        else:
            inside.remove(customer)
    assert not inside
