"""The runner when it stops, and while its store is away."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    Jobpipe,
    JobStatus,
    Progress,
    StoreAwayError,
    current_job,
)
from jobpipe.stores.memory import MemoryStore

from ...support.gates import AsyncGate
from ...support.jobs import finished
from ...support.waiting import LIMIT, run, wait_for
from .conftest import run_one

# Stopping


def test_a_graceful_stop_lets_short_jobs_end(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        go = threading.Event()
        began = threading.Event()

        @pipe.job
        async def short() -> str:
            await gate.pass_through()
            return "ended"

        @pipe.job
        def short_sync() -> str:
            began.set()
            go.wait(LIMIT)
            return "ended"

        async with pipe:
            async with pipe.running():
                await short.enqueue(id="a")
                await short_sync.enqueue(id="b")
                await gate.began.wait()
                await wait_for(began)
                loop = asyncio.get_running_loop()
                loop.call_soon(gate.go.set)
                loop.call_soon(go.set)
            for id in "ab":
                job = await pipe.get(id)
                assert (job.status, job.result, job.attempts) == (JobStatus.DONE, "ended", 1)

    run(scenario())


def test_a_graceful_stop_gives_long_jobs_back_with_their_attempt_and_they_run_later(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = Jobpipe(url, grace=0.05)
    is_long = True

    async def scenario() -> None:
        gate = AsyncGate()
        broken_off = asyncio.Event()

        @pipe.job("long", max_retries=0)
        async def long() -> str:
            if not is_long:
                return "at last"
            try:
                await gate.pass_through()
            finally:
                broken_off.set()
            return "never"

        nonlocal is_long
        async with pipe:
            async with pipe.running():
                await long.enqueue(id="x")
                await gate.began.wait()
            job = await pipe.get("x")
            assert (job.status, job.attempts, job.history, job.error) == (JobStatus.QUEUED, 0, (), None)
            await broken_off.wait()
            assert "failed at attempt" not in caplog.text
            is_long = False
            async with pipe.running():
                job = await finished(pipe, "x")
            assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, "at last")

    run(scenario())


def test_a_function_that_outlives_the_grace_is_given_back_and_what_it_returns_is_not_recorded(
    url: str,
) -> None:
    pipe = Jobpipe(url, grace=0.05)
    began, go, ended = threading.Event(), threading.Event(), threading.Event()

    @pipe.job
    def long() -> str:
        began.set()
        go.wait(LIMIT)
        ended.set()
        return "too late"

    async def scenario() -> None:
        async with pipe:
            async with pipe.running():
                await long.enqueue(id="x")
                await wait_for(began)
            go.set()
            await wait_for(ended)
            job = await pipe.get("x")
            assert (job.status, job.attempts, job.result) == (JobStatus.QUEUED, 0, None)

    run(scenario())


def test_no_new_jobs_are_begun_while_it_stops(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()

        @pipe.job
        async def block() -> str:
            await gate.pass_through()
            return (await pipe.enqueue("echo", id="late")).id

        async with pipe:
            async with pipe.running():
                await block.enqueue(id="block")
                await gate.began.wait()
                asyncio.get_running_loop().call_soon(gate.go.set)
            assert (await pipe.get("block")).status is JobStatus.DONE
            assert (await pipe.get("late")).status is JobStatus.QUEUED

    run(scenario())


# A store that is away


class Moody(MemoryStore):
    """Settles and claims only when it is in the mood."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.refused = 0

    def _mind(self) -> None:
        if self.is_away:
            self.refused += 1
            if self.refused >= 3:
                self.is_away = False
            raise StoreAwayError("it is away")

    def claim(self, *args: Any, **kwargs: Any) -> Any:
        self._mind()
        return super().claim(*args, **kwargs)

    def settle(self, settlements: Any) -> list[bool]:
        self._mind()
        return super().settle(settlements)


def test_an_outcome_is_kept_until_the_store_is_back(
    away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Moody()
    pipe = Jobpipe(store)

    @pipe.job
    async def work() -> str:
        store.is_away = True
        return "kept"

    job = run_one(pipe, "work")
    assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, "kept")
    assert store.refused == 3
    assert caplog.text.count("cannot be recorded for now") <= 1


def test_claims_go_on_when_the_store_is_back(away_from_home: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Moody()
    store.is_away = True
    assert run_one(Jobpipe(store), "echo").status is JobStatus.DONE
    assert [record.levelno for record in caplog.records if "no jobs can be claimed" in record.message] == [
        logging.WARNING
    ]


def test_a_settlement_whose_reply_was_lost_is_recorded_once(away_from_home: Path) -> None:
    class Forgetful(MemoryStore):
        settled = 0

        def settle(self, settlements: Any) -> list[bool]:
            answer = super().settle(settlements)
            self.settled += 1
            if self.settled == 1:
                raise StoreAwayError("the reply was lost")
            return answer

    job = run_one(Jobpipe(Forgetful()), "echo", 5)
    assert (job.status, job.result, len(job.history)) == (JobStatus.DONE, 5, 1)


@pytest.mark.parametrize("type", ["good", "bad"])
def test_the_last_progress_is_recorded_with_the_outcome_if_nobody_noted_it_before(
    away_from_home: Path, type: str
) -> None:
    class Deaf(MemoryStore):
        def progress(self, reports: Any) -> None: ...

    pipe = Jobpipe(Deaf())

    @pipe.job
    async def good() -> None:
        current_job().progress(0.7)

    @pipe.job(max_retries=0)
    async def bad() -> None:
        current_job().progress(0.7)
        raise ValueError

    assert run_one(pipe, type).progress == Progress(value=0.7)
