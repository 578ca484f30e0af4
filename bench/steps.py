"""Steps: one after the other in a plain handler, next to single rows of the same columns, committed by the same driver.

A step is one write: the first of a run also reads what is recorded, which is spread over all of them here.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from time import perf_counter, time

import psycopg
import redis

from jobpipe import Jobpipe, JobStatus, current_job

from .draining import ENGINES, Place
from .harness import Case, Goal, expect, micros_each

_STEPS = 500
_QUICKLY = 5
"""What a quick run divides the number of steps by."""
_MOST = 1.2
_RESULT = '{"id":17}'


def cases(*, quick: bool) -> list[Case]:
    n = _STEPS // (_QUICKLY if quick else 1)
    return [
        Case(
            name="steps",
            row=engine.title,
            shows=f"microseconds a step of a job on {engine.title}, one after the other",
            unit="µs",
            ours=partial(_recorded, engine.place, n),
            peer=partial(_committed, engine.place, n),
            peer_name="a bare row",
            ratio_of="peer/ours",
            goals=(Goal(">=", 1 / _MOST),),
        )
        for engine in ENGINES
    ]


def _recorded(place: Place, n: int) -> float:
    """By a job that runs in this process."""
    with place() as url:
        return asyncio.run(_run(url, n))


async def _run(url: str, n: int) -> float:
    pipe = Jobpipe(url)

    @pipe.job("steps", max_retries=0, logs=False)
    def steps() -> float:
        job = current_job()
        began = perf_counter()
        for number in range(n):
            job.step_sync(f"step-{number}", _charge)
        return perf_counter() - began

    async with pipe, pipe.running(workers=1):
        receipt = await steps.enqueue()
        job = await pipe.wait(receipt.id, 120)
        expect(int(job.status is JobStatus.DONE), 1, "jobs are done")
        expect(len(await pipe.steps(receipt.id)), n, "steps are recorded")
        return micros_each(job.result, n)


def _charge() -> dict[str, int]:
    return {"id": 17}


def _committed(place: Place, n: int) -> float:
    with place() as url, _BARE[url.partition(":")[0]](url) as commit:
        began = perf_counter()
        for number in range(n):
            commit(f"step-{number}", time())
        return micros_each(perf_counter() - began, n)


Commit = Callable[[str, float], object]


@contextmanager
def _sqlite(url: str) -> Iterator[Commit]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"CREATE TABLE bare ({_COLUMNS.format(real='REAL')})")
        yield lambda name, at: connection.execute(
            "INSERT INTO bare VALUES (?, ?, ?, ?, ?)", (1, name, at, at, _RESULT)
        )


@contextmanager
def _postgres(url: str) -> Iterator[Commit]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE bare ({_COLUMNS.format(real='double precision')})")
        yield lambda name, at: connection.execute(
            "INSERT INTO bare VALUES (%s, %s, %s, %s, %s)", (1, name, at, at, _RESULT), prepare=True
        )


@contextmanager
def _redis(url: str) -> Iterator[Commit]:
    with redis.Redis.from_url(url) as client:
        yield lambda name, at: client.hset("bare", name, f"[{at},{at},{_RESULT}]")


_COLUMNS = (
    "job integer NOT NULL, name text NOT NULL, began_at {real} NOT NULL, ended_at {real} NOT NULL, "
    "result text NOT NULL, PRIMARY KEY (job, name)"
)
_BARE = {"sqlite": _sqlite, "postgresql": _postgres, "redis": _redis}
