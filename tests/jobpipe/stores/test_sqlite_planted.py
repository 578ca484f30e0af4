"""What somebody else does to the file, or to a call, harms nobody but themselves."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Jobpipe, JobStatus
from jobpipe.errors import StoreAwayError
from jobpipe.stores.base import Settlement
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing.tools import new_job

from ...support.jobs import finished
from ...support.waiting import run


def test_a_number_of_a_pruned_job_is_not_used_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    store.migrate()
    store.insert([[new_job("old")]])
    store.cancel(["old"])
    assert store.prune(-1.0) == 1
    store.insert([[new_job("new")]])
    assert {event.id for event in store.events(0, 100)} == {"new"}
    assert [event.status for event in store.events(0, 100)] == [JobStatus.QUEUED]
    store.close()


def test_a_connection_with_factories_of_its_own_serves(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = SqliteStore(path)
    store.migrate()
    connection = sqlite3.connect(path)
    connection.row_factory = lambda cursor, row: {
        name[0]: value for name, value in zip(cursor.description, row, strict=True)
    }
    connection.text_factory = bytes
    assert isinstance(store.insert_in(connection, [new_job("a")]), list)
    assert isinstance(store.insert_in(connection, [new_job("a")]), list)
    assert connection.text_factory is bytes
    connection.commit()
    connection.close()
    assert store.get("a") is not None
    store.close()


def test_an_interrupted_leader_leaves_nobody_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl+C in the thread that inserts for others is its own; the others are told to ask again."""
    store = SqliteStore(tmp_path / "jobs.db")
    store.migrate()
    errors: list[BaseException] = []
    waits, go = threading.Event(), threading.Event()

    def interrupt(*_: object) -> Any:
        waits.set()
        go.wait(20)
        raise KeyboardInterrupt

    monkeypatch.setattr("jobpipe.stores.sqlite.store.insert_all", interrupt)

    def insert(id: str) -> None:
        try:
            store.insert([[new_job(id)]])
        except BaseException as error:
            errors.append(error)

    leader = threading.Thread(target=insert, args=["a"])
    leader.start()
    assert waits.wait(20)
    go.set()
    leader.join()
    assert [type(error) for error in errors] == [KeyboardInterrupt]
    monkeypatch.undo()
    store.insert([[new_job("b")]])
    assert store.get("b") is not None
    store.close()


def test_a_statement_that_time_would_not_mend_is_no_store_that_is_away(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "jobs.db")
    store.migrate()
    with pytest.raises(Exception) as caught, store._connections.writing() as cursor:
        cursor.execute("SELECT json('{')")
    assert not isinstance(caught.value, StoreAwayError)
    store.close()


def test_an_outcome_that_cannot_be_recorded_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqliteStore.settle

    def settle(self: SqliteStore, settlements: list[Settlement]) -> list[bool]:
        if any(each.lease.id == "bad" for each in settlements):
            raise ValueError("not this one")
        return real(self, settlements)

    monkeypatch.setattr(SqliteStore, "settle", settle)

    async def scenario() -> None:
        async with Jobpipe(f"sqlite:///{tmp_path}/jobs.db") as pipe, pipe.running():
            for id in ("bad", "good", "also-good"):
                await pipe.enqueue("echo", 1, id=id)
            assert (await finished(pipe, "good")).status is JobStatus.DONE
            assert (await finished(pipe, "also-good")).status is JobStatus.DONE

    run(scenario())


def test_what_ended_within_the_grace_is_recorded_though_the_store_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, begun = SqliteStore.settle, threading.Event()

    def settle(self: SqliteStore, settlements: list[Settlement]) -> list[bool]:
        begun.set()
        threading.Event().wait(0.4)  # beyond the grace
        return real(self, settlements)

    monkeypatch.setattr(SqliteStore, "settle", settle)

    async def scenario() -> None:
        async with Jobpipe(f"sqlite:///{tmp_path}/jobs.db", grace=0.1) as pipe:
            async with pipe.running():
                await pipe.enqueue("echo", 1, id="a", max_retries=0)
                assert await asyncio.to_thread(begun.wait, 20)
            job = await pipe.get("a")
            assert (job.status, job.attempts) == (JobStatus.DONE, 1)

    run(scenario())


def test_a_result_that_is_too_long_fails_the_job_and_names_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        pipe = Jobpipe(f"sqlite:///{tmp_path}/jobs.db")

        @pipe.job("long", max_retries=0)
        async def long() -> str:
            return "x" * 1_048_576

        async with pipe, pipe.running():
            await long.enqueue(id="a")
            job = await finished(pipe, "a")
            assert job.error is not None
            assert "result takes 1,048,578 bytes" in job.error.message

    run(scenario())
