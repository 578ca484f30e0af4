"""What a handler knows of its own job, and the progress that it reports."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from jobpipe import (
    Jobpipe,
    JobStatus,
    Progress,
    current_job,
)

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached, seen
from ...support.waiting import LIMIT, run
from .conftest import run_one

# Progress


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_progress_is_seen_while_it_runs_and_kept_when_it_is_done(pipe: Jobpipe, is_async: bool) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        go = threading.Event()

        def work() -> None:
            current_job().progress(0.4, "page 4")
            go.wait(LIMIT)
            current_job().progress(1)

        async def awork() -> None:
            current_job().progress(0.4, "page 4")
            await gate.pass_through()
            current_job().progress(1)

        pipe.job("work")(awork if is_async else work)
        async with pipe, pipe.running():
            await pipe.enqueue("work", id="x")
            await reached(pipe, "x", JobStatus.RUNNING)
            job = await seen(pipe, lambda: pipe.get("x"), lambda job: job.progress)
            assert job.progress == Progress(value=0.4, note="page 4")
            gate.go.set()
            go.set()
            assert (await finished(pipe, "x")).progress == Progress(value=1.0, note=None)

    run(scenario())


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_the_last_progress_of_a_failed_run_is_kept(pipe: Jobpipe, is_async: bool) -> None:
    def work() -> None:
        current_job().progress(0.1)
        current_job().progress(0.7, "here it broke")
        raise ValueError

    async def awork() -> None:
        work()

    pipe.job("work", max_retries=0)(awork if is_async else work)
    job = run_one(pipe, "work")
    assert job.status is JobStatus.FAILED
    assert job.progress == Progress(value=0.7, note="here it broke")


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "0.5", True, None], ids=ascii)
def test_a_wrong_progress_is_refused(memory: Jobpipe, value: Any) -> None:
    @memory.job("work", max_retries=0)
    async def work() -> None:
        current_job().progress(value)

    job = run_one(memory, "work")
    assert job.error is not None
    assert job.error.message.startswith("progress must be a number from 0 to 1")


def test_a_note_of_progress_holds_nothing_that_a_store_cannot_keep(pipe: Jobpipe) -> None:
    @pipe.job
    async def work() -> None:
        current_job().progress(0.5, "a\x00\ud800" + "x" * 10_000)

    job = run_one(pipe, "work")
    assert job.progress is not None
    assert job.progress.note is not None
    assert len(job.progress.note) < 520
    assert job.progress.note.startswith("a\\x00\\ud800x")


# The current job


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_a_handler_sees_its_own_job(pipe: Jobpipe, is_async: bool) -> None:
    def look() -> list[Any]:
        job = current_job()
        return [
            job.id,
            job.type,
            job.queue,
            job.attempts,
            job.max_retries,
            job.priority,
            job.created_at,
            repr(job),
        ]

    async def alook() -> list[Any]:
        return await asyncio.create_task(aside())

    async def aside() -> list[Any]:
        return look()

    pipe.job("look")(alook if is_async else look)
    job = run_one(pipe, "look", id="x", queue="q", priority=5, max_retries=2)
    *rest, created_at, words = job.result
    assert rest == ["x", "look", "q", 1, 2, 5]
    assert created_at == job.created_at.isoformat().replace("+00:00", "Z")
    assert words == "<job 'x' of type 'look', attempt 1>"


def test_there_is_no_current_job_outside_of_a_handler(memory: Jobpipe) -> None:
    async def scenario() -> None:
        async with memory, memory.running():
            receipt = await memory.enqueue("echo")
            await finished(memory, receipt.id)
            with pytest.raises(RuntimeError, match="while it runs"):
                current_job()

    run(scenario())
    with pytest.raises(RuntimeError, match="while it runs"):
        current_job()


def test_handlers_enqueue_further_jobs(pipe: Jobpipe) -> None:
    @pipe.job
    async def first(number: int) -> str:
        return (await pipe.enqueue("second", number + 1, id=f"{current_job().id}-2")).id

    @pipe.job
    def second(number: int) -> str:
        return pipe.enqueue_sync("echo", number + 1, id=f"{current_job().id}-3").id

    async def scenario() -> None:
        async with pipe, pipe.running(workers=1):
            await first.enqueue(1, id="a")
            assert (await finished(pipe, "a")).result == "a-2"
            assert (await finished(pipe, "a-2")).result == "a-2-3"
            assert (await finished(pipe, "a-2-3")).result == 3

    run(scenario())
