"""The handler's own transaction on SQLite has the only lock for writing: what the handler does meanwhile must not wait for it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Job, Jobpipe, JobStatus, StoreError, current_job
from jobpipe.stores.sqlite import SqliteStore

from ...support.jobs import finished
from ...support.waiting import LIMIT, run, until

REFUSED = "while the handler has its own transaction open"


@pytest.fixture
def pipe(sqlite_url: str) -> Iterator[Jobpipe]:
    with closing(Jobpipe(sqlite_url, queue_size=0)) as pipe:
        pipe.job("other")(lambda: None)
        yield pipe


@pytest.fixture
def own(pipe: Jobpipe, away_from_home: Path) -> Iterator[sqlite3.Connection]:
    """A connection with which handlers write."""
    pipe.store.migrate()
    with closing(sqlite3.connect(away_from_home / "jobs.db", check_same_thread=False)) as own:
        own.execute("CREATE TABLE effects (name TEXT)")
        own.commit()
        yield own


def run_order(pipe: Jobpipe, handler: Callable[[], Any], **options: Any) -> Job:
    pipe.job("order", max_retries=0, **options)(handler)

    async def scenario() -> Job:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            return await finished(pipe, "o")

    return run(scenario())


WRITES: dict[str, Callable[[Jobpipe], Any]] = {
    "enqueue": lambda pipe: pipe.enqueue("other"),
    "enqueue a unique one": lambda pipe: pipe.enqueue("other", unique="name"),
    "signal": lambda pipe: pipe.signal("o", "go"),
    "cancel": lambda pipe: pipe.cancel("o"),
    "pause": lambda pipe: pipe.pause("default"),
    "step": lambda pipe: current_job().step("without", _never),
    "wait_for": lambda pipe: current_job().wait_for("go"),
}


def _never() -> None:
    raise AssertionError("its result could not be recorded")


@pytest.mark.parametrize("write", WRITES)
def test_write_past_the_open_transaction_is_refused_at_once(
    pipe: Jobpipe, own: sqlite3.Connection, write: str
) -> None:
    async def order() -> float:
        with own:
            await current_job().step("s", int, connection=own)
            began = time.monotonic()
            with pytest.raises(StoreError, match=REFUSED):
                await WRITES[write](pipe)
            took = time.monotonic() - began
        await pipe.enqueue("other", id="after")
        return took

    job = run_order(pipe, order)
    assert job.status is JobStatus.DONE, job.error
    assert isinstance(job.result, float)
    assert job.result < 10, "it waits 30 s for the lock of another"
    assert [step.name for step in pipe.steps_sync("o")] == ["s"]
    assert pipe.get_sync("after").type == "other"


def test_plain_handler_is_refused_alike(pipe: Jobpipe, own: sqlite3.Connection) -> None:
    def order() -> None:
        with own:
            current_job().step_sync("s", int, connection=own)
            for write in (
                lambda: pipe.enqueue_sync("other"),
                lambda: pipe.signal_sync("o", "go"),
                lambda: current_job().step_sync("without", _never),
            ):
                with pytest.raises(StoreError, match=REFUSED):
                    write()
        pipe.enqueue_sync("other", id="after")

    assert run_order(pipe, order).status is JobStatus.DONE
    assert pipe.get_sync("after").type == "other"


def test_tasks_of_the_handler_are_refused_alike(pipe: Jobpipe, own: sqlite3.Connection) -> None:
    """Whichever of them has used the connection."""

    async def order() -> None:
        with own:
            await asyncio.create_task(current_job().step("s", int, connection=own))
            for write in (pipe.enqueue("other"), asyncio.create_task(pipe.enqueue("other"))):
                with pytest.raises(StoreError, match=REFUSED):
                    await write

    assert run_order(pipe, order).status is JobStatus.DONE


def test_what_the_connection_is_passed_to_is_no_write_past_it(pipe: Jobpipe, own: sqlite3.Connection) -> None:
    async def order() -> None:
        with own:
            await current_job().step("s", int, connection=own)
            await pipe.enqueue("other", id="with", connection=own)
            await current_job().step("t", int, connection=own)
            await current_job().finish("fine", connection=own)

    assert run_order(pipe, order).result == "fine"
    assert pipe.get_sync("with").type == "other"
    assert [step.name for step in pipe.steps_sync("o")] == ["s", "t"]


def test_what_only_reads_goes_on(away_from_home: Path, sqlite_url: str) -> None:
    """Also when a job came due meanwhile, which the next to write will queue."""
    later = [0.0]
    store = SqliteStore(away_from_home / "jobs.db", clock=lambda: time.time() + later[0])
    pipe = Jobpipe(store)

    async def order() -> list[str]:
        await current_job().step("before", int)
        await pipe.enqueue("order", id="due", delay=60)
        with closing(sqlite3.connect(away_from_home / "jobs.db")) as own, own:
            await current_job().step("s", int, connection=own)
            later[0] = 100.0
            began = time.monotonic()
            due = await pipe.get("due")
            names = [step.name for step in await pipe.steps("o")]
            assert time.monotonic() - began < 10
            later[0] = 0.0
        return [due.status, *names]

    assert run_order(pipe, order).result == ["scheduled", "before"]
    store.close()


def test_sleep_in_an_open_transaction_undoes_it(pipe: Jobpipe, own: sqlite3.Connection) -> None:
    def insert() -> int:
        own.execute("INSERT INTO effects VALUES ('charge')")
        return 7

    async def sleeper() -> int:
        with own:
            charged = await current_job().step("s", insert, connection=own)
            await current_job().sleep("nap", 0.01)
        return charged

    job = run_order(pipe, sleeper)
    assert (job.status, job.result, job.attempts) == (JobStatus.DONE, 7, 1)
    assert own.execute("SELECT * FROM effects").fetchall() == [("charge",)]


def test_others_wait_for_the_open_transaction_and_lose_nothing(
    pipe: Jobpipe, own: sqlite3.Connection
) -> None:
    """Who enqueues, and what the handler itself has reported and logged."""
    at_work, go_on = asyncio.Event(), asyncio.Event()
    logger = logging.getLogger("shop")

    async def order() -> None:
        current_job().progress(0.25, "before")
        logger.warning("before")
        with own:
            await current_job().step("s", int, connection=own)
            current_job().progress(0.5, "within")
            logger.warning("within")
            at_work.set()
            await go_on.wait()
            await current_job().finish("fine", connection=own)
        logger.warning("after")

    pipe.job("order", max_retries=0, logs=True)(order)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            await at_work.wait()
            enqueued = asyncio.create_task(pipe.enqueue("other", id="meanwhile"))
            await until(lambda: pipe.store._connections._writing.locked())  # type: ignore[attr-defined]
            assert not enqueued.done()
            go_on.set()
            assert (await asyncio.wait_for(enqueued, LIMIT)).is_new
            job = await finished(pipe, "o")
            assert (job.result, job.progress and job.progress.note) == ("fine", "within")
            logs = await pipe.logs("o")
            assert [line.message for line in logs.lines][:2] == ["before", "within"]

    run(scenario())
