"""Jobs with unique names from Python, on memory and on SQLite: what a duplicate comes to, and that they run one by one."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from jobpipe import DuplicateError, Jobpipe, JobRequest, JobStatus, OnDuplicate, Reason
from jobpipe.model.job import Move
from jobpipe.testing.tools import BOOM, finish, take

from ..support.jobs import finished, reached
from ..support.waiting import run
from .conftest import On


def test_a_duplicate_is_kept_replaced_or_refused(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        first = await pipe.enqueue("echo", 1, unique="n", delay=60)
        kept = await pipe.enqueue("echo", 2, id="b", unique="n")
        assert (kept.id, kept.status, kept.is_new) == (first.id, JobStatus.SCHEDULED, False)
        assert (await pipe.get(first.id)).payload == 1
        replaced = await pipe.enqueue("echo", 3, unique="n", on_duplicate="replace", max_wait=timedelta(0, 9))
        assert (replaced.id, replaced.status, replaced.is_new) == (first.id, JobStatus.QUEUED, False)
        assert (await pipe.get(first.id)).payload == 3
        with pytest.raises(DuplicateError, match="only a job of the same type and queue"):
            await pipe.enqueue("echo", 4, unique="n", on_duplicate="replace", queue="other")
        many = [JobRequest(payload=n, unique="n", on_duplicate=OnDuplicate.REPLACE) for n in range(5, 8)]
        assert {receipt.id for receipt in await pipe.enqueue_many(many)} == {first.id}
        assert [job.id for job in (await pipe.page()).jobs] == [first.id]
        assert (await pipe.get(first.id)).payload == 7

    on(scenario)


def test_a_retry_by_hand_is_refused_and_in_bulk_skipped(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for id in ("a", "b"):
            await pipe.enqueue("echo", id=id, unique="n" if id == "a" else None, max_retries=0)
            (claim,) = take(pipe.store, types=["echo"])
            finish(pipe.store, claim, Move.FAIL, error=BOOM)
        await pipe.enqueue("echo", id="c", unique="n")
        with pytest.raises(DuplicateError) as caught:
            await pipe.retry("a")
        assert (caught.value.id, caught.value.unique) == ("c", "n")
        assert await pipe.retry_many(all=True) == 1
        assert (await pipe.get("a")).status is JobStatus.FAILED
        await pipe.cancel("c")
        assert (await pipe.retry("a")).status is JobStatus.QUEUED

    on(scenario)


def test_the_next_one_begins_as_soon_as_the_one_that_runs_has_ended(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        may_end, running, most = asyncio.Event(), 0, 0

        @pipe.job
        async def work(n: int) -> int:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await may_end.wait()
            running -= 1
            return n

        async with pipe.running(workers=4):
            first = await work.enqueue(0, unique="n")
            await reached(pipe, first.id, JobStatus.RUNNING)
            second = await work.enqueue(1, unique="n")
            plain = await work.enqueue(2)
            await reached(pipe, plain.id, JobStatus.RUNNING)
            why = await pipe.explain(second.id)
            assert (why.reason, why.blockers) == (Reason.UNIQUE, (first.id,))
            assert "n" in why.text
            may_end.set()
            assert (await finished(pipe, second.id)).result == 1
            first_run, second_run = [(await pipe.get(each.id)).history[0] for each in (first, second)]
            assert first_run.ended_at <= second_run.began_at
        assert most == 2

    on(scenario)


def test_restart_breaks_off_the_one_that_runs(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        @pipe.job
        async def work(seconds: float) -> float:
            await asyncio.sleep(seconds)
            return seconds

        async with pipe.running(workers=2):
            first = await work.enqueue(600, unique="n", on_duplicate="restart")
            await reached(pipe, first.id, JobStatus.RUNNING)
            second = await work.enqueue(0, unique="n", on_duplicate="restart")
            assert second.is_new
            assert (await finished(pipe, first.id)).status is JobStatus.CANCELLED
            assert (await finished(pipe, second.id)).status is JobStatus.DONE

    on(scenario)


def test_a_duplicate_in_the_callers_transaction_is_undone_with_it(
    sqlite_url: str, away_from_home: Path
) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as pipe:
            first = await pipe.enqueue("echo", 1, unique="n")
            with closing(sqlite3.connect(away_from_home / "jobs.db")) as own:
                for payload, end in ((2, own.rollback), (3, own.commit)):
                    receipt = await pipe.enqueue(
                        "echo", payload, unique="n", on_duplicate="replace", connection=own
                    )
                    assert receipt.id == first.id
                    end()
                    assert (await pipe.get(first.id)).payload == (1 if payload == 2 else 3)
                with pytest.raises(DuplicateError):
                    await pipe.enqueue(
                        "echo", 4, unique="n", on_duplicate="replace", queue="q", connection=own
                    )
                own.commit()
            assert [job.id for job in (await pipe.page()).jobs] == [first.id]

    run(scenario())
