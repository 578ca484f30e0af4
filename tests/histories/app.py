"""The program of the play: its handlers write down when they begin and how they end, in the working folder.

What they return is who they are, so that a result tells which run it is the result of.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobpipe import CurrentJob, Jobpipe, Rate, current_job

from .record import NOTES, Bound, write_line

LEASE = 1.0
GRACE = 1.0
BEAT, BEAT_EVERY = "beat", 0.5
BOUNDS = (
    Bound(type="paced", interval=1 / 25),
    Bound(type="bursty", interval=1 / 10, burst=5),
    Bound(type="few", concurrency=2),
    Bound(type="alone", concurrency=1, is_keyed=True),
)

if "SWITCH_INTERVAL" in os.environ:  # `make test_race`
    sys.setswitchinterval(float(os.environ["SWITCH_INTERVAL"]))

pipe = Jobpipe("sqlite:///jobs.db", lease=LEASE, grace=GRACE, queue_size=0, workers=6)


def _note(what: str, job: CurrentJob) -> None:
    write_line(NOTES, what=what, id=job.id, attempt=job.attempts, worker=job.worker, at=time.time())


@contextmanager
def noted() -> Iterator[list[Any]]:
    """A run, from begin to end; what it gives is the result."""
    job = current_job()
    _note("begin", job)
    how = "broken off"
    try:
        yield [job.worker, job.attempts]
        how = "done"
    except Exception:
        how = "error"
        raise
    finally:
        _note(how, job)


@pipe.job("quick")
async def quick(payload: Any) -> list[Any]:
    with noted() as result:
        return result


@pipe.job("slow")
async def slow(seconds: float) -> list[Any]:
    with noted() as result:
        await asyncio.sleep(seconds)
        return result


@pipe.job("thread")
def thread(seconds: float) -> list[Any]:
    with noted() as result:
        time.sleep(seconds)
        return result


@pipe.job("flaky", base=0.05)
async def flaky(failures: int) -> list[Any]:
    """Fails so many times, if its attempts are enough for that."""
    with noted() as result:
        if current_job().attempts <= failures:
            raise ValueError("not yet")
        return result


@pipe.job("paced", rate="25/s")
async def paced(payload: Any) -> list[Any]:
    with noted() as result:
        return result


@pipe.job("bursty", rate=Rate(10, burst=5))
async def bursty(payload: Any) -> list[Any]:
    with noted() as result:
        return result


@pipe.job("few", concurrency=2)
async def few(seconds: float) -> list[Any]:
    with noted() as result:
        await asyncio.sleep(seconds)
        return result


@pipe.job("alone", concurrency=1, key=lambda payload: payload["key"])
async def alone(payload: dict[str, Any]) -> list[Any]:
    with noted() as result:
        await asyncio.sleep(payload["seconds"])
        return result


@pipe.job("solo", base=0.05)
async def solo(payload: dict[str, Any]) -> list[Any]:
    """Of each unique name one runs at a time, also between its runs."""
    with noted() as result:
        await asyncio.sleep(payload["seconds"])
        if current_job().attempts <= payload["failures"]:
            raise ValueError("not yet")
        return result


@pipe.job(BEAT)
async def beat() -> list[Any]:
    with noted() as result:
        return result
