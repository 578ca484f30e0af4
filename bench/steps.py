"""Steps: one after the other in a plain handler, next to single rows of the same columns that a handler commits by itself.

Both run in a worker, on the same store, so that what happens beside them is the same, and both are on disk before the next
one begins, on Redis, too. A step is one write: the first of a run also reads what is recorded, which is spread over all
of them here.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from time import perf_counter, sleep, time

import psycopg
import redis

from jobpipe import Jobpipe, current_job

from .draining import ENGINES, Place
from .harness import Case, Goal, expect, micros_each

_STEPS = 500
_QUICKLY = 5
"""What a quick run divides the number of steps by."""
_MOST = 1.2
_PATIENCE = 120.0
_RESULT = '{"id":17}'

Commit = Callable[[str], object]
"""Commits a row of that name."""
Rows = Callable[[str], AbstractContextManager[Commit]]
"""How rows are committed to the store at a URL."""


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
    with place() as url, _on_disk(url):
        return asyncio.run(_run(url, n, _steps))


def _committed(place: Place, n: int) -> float:
    with place() as url, _on_disk(url):
        return asyncio.run(_run(url, n, _BARE[url.partition(":")[0]]))


@contextmanager
def _on_disk(url: str) -> Iterator[None]:
    """Have Redis wait for the disk with each write, as the others do by themselves."""
    if not url.startswith("redis:"):
        yield
        return
    with redis.Redis.from_url(url) as client:
        client.config_set("appendfsync", "always")
        client.config_set("appendonly", "yes")
        while client.info("persistence")["aof_rewrite_in_progress"]:
            sleep(0.01)
        try:
            yield
        finally:
            client.config_set("appendonly", "no")


async def _run(url: str, n: int, rows: Rows) -> float:
    """Microseconds a row, by a job that runs in this process."""
    pipe = Jobpipe(url)
    took: Future[float] = Future()  # Why not the job's result: who waits for that looks at every commit

    @pipe.job("rows", max_retries=0, logs=False)
    def write() -> None:
        with rows(url) as commit:
            began = perf_counter()
            for number in range(n):
                commit(f"step-{number}")
            took.set_result(perf_counter() - began)

    async with pipe, pipe.running(workers=1):
        receipt = await write.enqueue()
        seconds = await asyncio.wait_for(asyncio.wrap_future(took), _PATIENCE)
        expect(len(await pipe.steps(receipt.id)), n if rows is _steps else 0, "steps are recorded")
        return micros_each(seconds, n)


@contextmanager
def _steps(url: str) -> Iterator[Commit]:
    job = current_job()
    yield lambda name: job.step_sync(name, _charge)


def _charge() -> dict[str, int]:
    return {"id": 17}


@contextmanager
def _sqlite(url: str) -> Iterator[Commit]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as connection:
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"CREATE TABLE bare ({_COLUMNS.format(real='REAL')})")
        yield lambda name: connection.execute(
            "INSERT INTO bare VALUES (?, ?, ?, ?, ?)", (1, name, time(), time(), _RESULT)
        )


@contextmanager
def _postgres(url: str) -> Iterator[Commit]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE bare ({_COLUMNS.format(real='double precision')})")
        yield lambda name: connection.execute(
            "INSERT INTO bare VALUES (%s, %s, %s, %s, %s)", (1, name, time(), time(), _RESULT), prepare=True
        )


@contextmanager
def _redis(url: str) -> Iterator[Commit]:
    with redis.Redis.from_url(url) as client:
        yield lambda name: client.hset("bare", name, f"[{time()},{time()},{_RESULT}]")


_COLUMNS = (
    "job integer NOT NULL, name text NOT NULL, began_at {real} NOT NULL, ended_at {real} NOT NULL, "
    "result text NOT NULL, PRIMARY KEY (job, name)"
)
_BARE = {"sqlite": _sqlite, "postgresql": _postgres, "redis": _redis}
