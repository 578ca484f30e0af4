"""The program of the play: its handlers write down when they begin and how they end, in the working folder.

What they return is who they are, so that a result tells which run it is the result of.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobpipe import CurrentJob, Jobpipe, LeaseLostError, Rate, SignalTimeout, current_job
from jobpipe.model.outcome import Suspension

from .record import NOTES, STEPS, TIMED_OUT, Bound, write_line

LEASE = 1.0
GRACE = 1.0
BEAT, BEAT_EVERY = "beat", 0.5
APPROVED, SAGAS = "approved", ("saga", "saga-in-thread")
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
    except LeaseLostError:
        how = "lost"
        raise
    except Exception:
        how = "error"
        raise
    except Suspension:
        how = "suspended"
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


def act(name: str) -> str:
    """The effect of a step: a line more in a file that nobody takes back."""
    job, mark = current_job(), uuid.uuid4().hex
    write_line(STEPS, what="effect", id=job.id, name=name, mark=mark, claimed_at=job._claim.started_at)
    return mark


async def act_slowly(name: str, seconds: float) -> str:
    mark = act(name)
    await asyncio.sleep(seconds)
    return mark


def see(name: str, value: str) -> None:
    is_signal = name == APPROVED
    write_line(STEPS, what="seen", id=current_job().id, name=name, value=value, is_signal=is_signal)


def mark_sleep(at: float, *, is_over: bool = False) -> None:
    write_line(STEPS, what="slept", id=current_job().id, name="cool-off", at=at, is_over=is_over)


@pipe.job("saga", base=0.05)
async def saga(payload: dict[str, Any]) -> list[Any]:
    """A step, a sleep, a wait, and a step."""
    with noted() as result:
        job = current_job()
        see("charge", await job.step("charge", act_slowly, "charge", payload["seconds"]))
        mark_sleep(time.time() + payload["sleep"])
        await job.sleep("cool-off", payload["sleep"])
        mark_sleep(time.time(), is_over=True)
        try:
            see(APPROVED, await job.wait_for(APPROVED, payload["timeout"]))
        except SignalTimeout:
            see(APPROVED, TIMED_OUT)
        see("ship", await job.step("ship", act, "ship"))
        return result


@pipe.job("saga-in-thread", base=0.05)
def saga_in_a_thread(payload: dict[str, Any]) -> list[Any]:
    """The same, as a plain function."""
    with noted() as result:
        job = current_job()
        see("charge", job.step_sync("charge", act, "charge"))
        mark_sleep(time.time() + payload["sleep"])
        job.sleep_sync("cool-off", payload["sleep"])
        mark_sleep(time.time(), is_over=True)
        try:
            see(APPROVED, job.wait_for_sync(APPROVED, payload["timeout"]))
        except SignalTimeout:
            see(APPROVED, TIMED_OUT)
        see("ship", job.step_sync("ship", act, "ship"))
        return result


@pipe.job(BEAT)
async def beat() -> list[Any]:
    with noted() as result:
        return result
