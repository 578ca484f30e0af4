"""The runner: what becomes of jobs that succeed or fail, which jobs run, and in what order."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from jobpipe import (
    Jobpipe,
    JobStatus,
    Reason,
    current_job,
)
from rate_envelope_queue import StopEnvelope, StopType

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached
from ...support.waiting import run
from .conftest import run_one


def test_a_job_that_came_while_all_places_were_taken_begins_as_soon_as_one_is_free(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it had room to claim more than it has places: nobody waits for the poll."""
    monkeypatch.setattr("jobpipe.worker.claim_loop.POLL", 1e6)

    async def scenario() -> None:
        gates = {name: AsyncGate() for name in "abc"}

        @memory.job
        async def hold(name: str) -> None:
            await gates[name].pass_through()

        @memory.job
        async def brief() -> None:
            await asyncio.sleep(0.06)  # so long that one more is claimed than there are places

        async with memory, memory.running(workers=2):
            await finished(memory, (await brief.enqueue()).id)
            first = [await hold.enqueue(name) for name in "ab"]
            for name in "ab":
                await gates[name].began.wait()
            last = await hold.enqueue("c")
            for _ in range(10):
                await asyncio.sleep(0)  # it is seen that there is no room
            gates["a"].go.set()
            await gates["c"].began.wait()
            for name in "bc":
                gates[name].go.set()
            for receipt in (*first, last):
                await finished(memory, receipt.id)

    run(scenario())


# Success


def test_a_job_is_run_and_its_result_kept(pipe: Jobpipe) -> None:
    job = run_one(pipe, "echo", {"a": [1, None, "ä"]}, id="x")
    assert (job.status, job.result, job.attempts, job.error) == (
        JobStatus.DONE,
        {"a": [1, None, "ä"]},
        1,
        None,
    )
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.created_at <= job.started_at <= job.finished_at
    (attempt,) = job.history
    assert (attempt.number, attempt.error) == (1, None)
    assert attempt.began_at <= attempt.ended_at


def test_a_plain_function_runs_in_a_thread_and_a_coroutine_on_the_loop(pipe: Jobpipe) -> None:
    @pipe.job
    def sync() -> bool:
        return threading.current_thread() is threading.main_thread()

    @pipe.job("async")
    async def coroutine() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert run_one(pipe, "sync").result is False
    assert run_one(pipe, "async").result is True


def test_jobs_that_were_put_in_before_the_start_are_run(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        async with pipe:
            receipts = [await pipe.enqueue("echo", number) for number in range(20)]
            async with pipe.running():
                jobs = [await finished(pipe, receipt.id) for receipt in receipts]
        assert [job.result for job in jobs] == list(range(20))

    run(scenario())


def test_many_jobs_of_both_kinds_all_run_exactly_once(pipe: Jobpipe) -> None:
    ran: list[int] = []

    @pipe.job
    def sync(number: int) -> None:
        ran.append(number)

    @pipe.job("async")
    async def coroutine(number: int) -> None:
        ran.append(number)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await sync.enqueue_many(range(0, 200, 2))
            await coroutine.enqueue_many(range(1, 200, 2))
            jobs = (await pipe.page(limit=500)).jobs
            for job in jobs:
                assert (await finished(pipe, job.id)).status is JobStatus.DONE

    run(scenario())
    assert sorted(ran) == list(range(200))


def test_as_many_run_at_once_as_there_are_workers_and_no_more(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        going = asyncio.Semaphore(0)
        go = asyncio.Event()
        at_once = 0

        @pipe.job
        async def work() -> int:
            nonlocal at_once
            at_once += 1
            most = at_once
            going.release()
            await go.wait()
            at_once -= 1
            return most

        async with pipe, pipe.running(workers=3):
            receipts = [await work.enqueue() for _ in range(8)]
            for _ in range(3):
                await going.acquire()
            assert at_once == 3
            go.set()
            results = [(await finished(pipe, receipt.id)).result for receipt in receipts]
        assert max(results) == 3

    run(scenario())


# Failure


def test_a_job_that_always_fails_runs_once_and_ten_times_more(pipe: Jobpipe) -> None:
    @pipe.job("broken", base=0)
    async def broken(payload: str) -> None:
        raise ValueError(f"no {payload} today")

    job = run_one(pipe, "broken", "bread")
    assert (job.status, job.attempts) == (JobStatus.FAILED, 11)
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("ValueError", "no bread today")
    assert "in broken" in (job.error.traceback or "")
    assert [attempt.number for attempt in job.history] == list(range(1, 12))
    assert all(attempt.error and attempt.error.message == "no bread today" for attempt in job.history)
    assert job.result is None


def test_a_job_that_recovers_is_done_and_its_history_tells_of_the_failures(pipe: Jobpipe) -> None:
    @pipe.job("flaky", base=0)
    def flaky() -> int:
        if current_job().attempts < 3:
            raise OSError("not yet")
        return current_job().attempts

    job = run_one(pipe, "flaky")
    assert (job.status, job.attempts, job.result, job.error) == (JobStatus.DONE, 3, 3, None)
    assert [attempt.error is None for attempt in job.history] == [False, False, True]


@pytest.mark.parametrize("deadline", [None, 60.0])
@pytest.mark.parametrize("is_async", [True, False], ids=["coroutine", "function"])
def test_a_traceback_begins_at_the_handler(memory: Jobpipe, is_async: bool, deadline: float | None) -> None:
    def broken(number: int) -> None:
        raise ValueError("here")

    async def broken_coroutine(number: int) -> None:
        broken(number)

    memory.job("broken", max_retries=0, deadline=deadline)(broken_coroutine if is_async else broken)
    error = run_one(memory, "broken", 5).error
    assert error is not None
    assert error.traceback is not None
    assert error.traceback.count("File ") == (2 if is_async else 1), error.traceback


def test_without_retries_it_runs_once(pipe: Jobpipe) -> None:
    job = run_one(pipe, "fail", "on purpose", max_retries=0)
    assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("JobFailed", "on purpose")


def test_between_two_runs_it_is_scheduled_and_says_why(pipe: Jobpipe) -> None:
    @pipe.job("later", base=3600, cap=3600, jitter=False)
    async def later() -> None:
        raise ValueError("not now")

    async def scenario() -> None:
        async with pipe, pipe.running():
            await later.enqueue(id="x")
            job = await reached(pipe, "x", JobStatus.SCHEDULED)
            assert job.attempts == 1
            assert job.error is not None
            (attempt,) = job.history
            assert (job.run_at - attempt.ended_at).total_seconds() == pytest.approx(3600, abs=1)
            assert (await pipe.explain("x")).reason is Reason.SCHEDULED

    run(scenario())


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


ANYTHING: list[tuple[BaseException, str]] = [
    (SystemExit(3), "SystemExit"),
    (KeyboardInterrupt(), "KeyboardInterrupt"),
    (GeneratorExit(), "GeneratorExit"),
    (Unspeakable(), "Unspeakable"),
    (asyncio.CancelledError(), "Cancelled"),
    (StopIteration("x"), "RuntimeError"),
    (StopType("no more of these"), "StopType"),
    (StopEnvelope("no more of this"), "StopEnvelope"),
    (TimeoutError("slow"), "TimeoutError"),
    (BaseExceptionGroup("several", [ValueError("one"), KeyboardInterrupt()]), "BaseExceptionGroup"),
]


@pytest.mark.parametrize(("error", "name"), ANYTHING, ids=[name for _, name in ANYTHING])
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_whatever_a_handler_raises_is_a_failed_run_and_the_worker_goes_on(
    memory: Jobpipe, error: BaseException, name: str, is_async: bool
) -> None:
    def raises(payload: Any) -> Any:
        if payload == "bad":
            raise error
        return payload

    async def araises(payload: Any) -> Any:
        return raises(payload)

    memory.job("work", base=0)(araises if is_async else raises)

    async def scenario() -> None:
        async with memory, memory.running(workers=1):
            await memory.enqueue("work", "bad", id="bad", max_retries=1)
            job = await finished(memory, "bad")
            assert (job.status, job.attempts) == (JobStatus.FAILED, 2)
            assert job.error is not None
            assert job.error.type.startswith(name)
            for number in range(3):
                receipt = await memory.enqueue("work", number)
                assert (await finished(memory, receipt.id)).result == number

    run(scenario())


@pytest.mark.parametrize(
    "value", [object(), 1j, float("nan"), "a\x00b", "\ud800"], ids=lambda each: type(each).__name__
)
def test_a_result_that_cannot_be_kept_is_an_error(pipe: Jobpipe, value: Any) -> None:
    @pipe.job("odd", max_retries=0)
    async def odd() -> Any:
        return value

    job = run_one(pipe, "odd")
    assert job.status is JobStatus.FAILED
    assert job.error is not None
    assert job.error.type == "BadInputError"
    assert job.error.message.startswith("result ")


# Which jobs, and in what order


def test_a_type_that_nobody_knows_waits_and_runs_as_soon_as_somebody_does(sqlite_url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as old, old.running():
            await old.enqueue("novel", 5, id="x")
            receipt = await old.enqueue("echo", id="after")
            await finished(old, receipt.id)
            job = await old.get("x")
            assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)
            assert (await old.explain("x")).reason is Reason.NO_WORKER
        new = Jobpipe(sqlite_url)

        @new.job
        async def novel(number: int) -> int:
            return number + 1

        async with new, new.running():
            job = await finished(new, "x")
            assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, 6)

    run(scenario())


def test_one_worker_runs_by_priority_and_then_in_order(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        order: list[str] = []

        @pipe.job
        async def work(name: str) -> None:
            order.append(name)

        @pipe.job
        async def block() -> None:
            await gate.pass_through()

        async with pipe, pipe.running(workers=1):
            await block.enqueue()
            await gate.began.wait()
            names = {"low": -5, "first": 0, "second": 0, "high": 10, "highest": 1000}
            receipts = [await work.enqueue(name, priority=priority) for name, priority in names.items()]
            gate.go.set()
            for receipt in receipts:
                await finished(pipe, receipt.id)
        assert order == ["highest", "high", "first", "second", "low"]

    run(scenario())


def test_a_paused_queue_runs_nothing_until_it_is_resumed(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.pause("mails")
            await pipe.enqueue("echo", id="paused", queue="mails")
            receipt = await pipe.enqueue("echo")
            await finished(pipe, receipt.id)
            assert (await pipe.get("paused")).status is JobStatus.QUEUED
            await pipe.resume("mails")
            assert (await finished(pipe, "paused")).status is JobStatus.DONE

    run(scenario())


def test_a_scheduled_job_runs_when_it_is_due(pipe: Jobpipe) -> None:
    job = run_one(pipe, "echo", delay=0.05)
    assert job.started_at is not None
    assert job.started_at >= job.run_at
    assert (job.run_at - job.created_at).total_seconds() == pytest.approx(0.05, abs=0.001)


def test_a_process_without_workers_runs_nothing(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        async with pipe, pipe.running(workers=0):
            await pipe.enqueue("echo", id="x")
            assert await pipe.workers() == []
            assert (await pipe.explain("x")).reason is Reason.NO_WORKER

    run(scenario())
