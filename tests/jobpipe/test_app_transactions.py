"""Jobs in the caller's own transaction."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    JobConflictError,
    JobNotFoundError,
    Jobpipe,
    JobRequest,
    JobStatus,
    QueueFullError,
)

from ..support.waiting import run


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("isolation_level", ["DEFERRED", "IMMEDIATE", None])
def test_a_job_is_there_if_and_when_the_callers_transaction_commits(
    sqlite_url: str, away_from_home: Path, is_async: bool, isolation_level: Any
) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as pipe:
            with closing(sqlite3.connect(away_from_home / "jobs.db", isolation_level=isolation_level)) as own:
                own.execute("CREATE TABLE orders (number INTEGER)")
                own.commit()

                async def order(number: int) -> None:
                    if isolation_level is None:
                        own.execute("BEGIN")
                    own.execute("INSERT INTO orders VALUES (?)", (number,))
                    id = f"order-{number}"
                    if is_async:
                        await pipe.enqueue("echo", id=id, connection=own, tags=["a"], unique="n")
                    else:
                        pipe.enqueue_sync("echo", id=id, connection=own)
                    with pytest.raises(JobNotFoundError):
                        await pipe.get(id)

                await order(1)
                own.rollback()
                with pytest.raises(JobNotFoundError):
                    await pipe.get("order-1")
                await order(2)
                own.commit()
                job = await pipe.get("order-2")
                assert (job.status, job.unique) == (JobStatus.QUEUED, "n" if is_async else None)
                assert own.execute("SELECT number FROM orders").fetchall() == [(2,)]
                assert (await pipe.stats()).queued == 1

    run(scenario())


def test_a_refused_job_leaves_the_callers_transaction_as_it_was(
    sqlite_url: str, away_from_home: Path
) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url, queue_size=1) as pipe:
            await pipe.enqueue("echo", 1, id="taken")
            with closing(sqlite3.connect(away_from_home / "jobs.db")) as own:
                own.execute("CREATE TABLE orders (number INTEGER)")
                own.execute("INSERT INTO orders VALUES (1)")
                with pytest.raises(JobConflictError):
                    await pipe.enqueue("echo", 2, id="taken", connection=own)
                with pytest.raises(QueueFullError):
                    await pipe.enqueue("echo", connection=own)
                assert own.in_transaction
                assert not (await pipe.enqueue("echo", 1, id="taken", connection=own)).is_new
                own.commit()
                assert own.execute("SELECT count(*) FROM orders").fetchone() == (1,)
            assert (await pipe.stats()).queued == 1

    run(scenario())


def test_a_foreign_connection_is_refused(sqlite_url: str, away_from_home: Path) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as pipe:
            for path in (":memory:", str(away_from_home / "other.db")):
                with closing(sqlite3.connect(path)) as foreign:
                    with pytest.raises(
                        BadInputError, match=r"^connection must be one to the store's own file"
                    ):
                        await pipe.enqueue("echo", connection=foreign)
                    assert not foreign.in_transaction
            for wrong in (object(), "connection", 5):
                with pytest.raises(BadInputError, match=r"^connection must be a sqlite3\.Connection"):
                    pipe.enqueue_sync("echo", connection=wrong)
            assert (await pipe.page()).jobs == []

    run(scenario())


def test_memory_has_no_transactions(away_from_home: Path) -> None:
    own = sqlite3.connect(":memory:")
    with (
        closing(own),
        closing(Jobpipe("memory://")) as pipe,
        pytest.raises(BadInputError, match=r"^connection"),
    ):
        pipe.enqueue_sync("echo", connection=own)


def test_many_jobs_of_one_transaction_are_there_if_it_commits(sqlite_url: str) -> None:
    pipe = Jobpipe(sqlite_url)
    requests = [JobRequest(type="echo", payload=n, id=f"j{n}") for n in range(3)]
    path = sqlite_url.removeprefix("sqlite:///")
    with closing(pipe), closing(sqlite3.connect(path)) as connection:
        assert pipe.store.get("j0") is None
        pipe.enqueue_many_sync(requests, connection=connection)
        connection.rollback()
        assert pipe.store.get("j0") is None
        pipe.enqueue_many_sync(requests, connection=connection)
        connection.commit()
        assert all(pipe.store.get(id) for id in ("j0", "j1", "j2"))
