"""Real runs on memory and SQLite: what a handler does, and what becomes of its job."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    Cancel,
    Job,
    Jobpipe,
    JobStatus,
    Progress,
    Reason,
    Retry,
    Snooze,
    StoreAwayError,
    current_job,
)
from jobpipe.model.job import instant
from jobpipe.stores.memory import MemoryStore
from rate_envelope_queue import RateLimited, StopEnvelope, StopType

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached, seen
from ...support.waiting import LIMIT, run, wait_for

Scenario = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture
def pipe(url: str) -> Jobpipe:
    return Jobpipe(url, queue_size=0, builtins=True)


@pytest.fixture
def memory(away_from_home: Path) -> Jobpipe:
    """Where the store makes no difference."""
    return Jobpipe("memory://", queue_size=0)


def run_one(pipe: Jobpipe, type: str, payload: Any = None, **options: Any) -> Job:
    """Put a job in, run it, and return what became of it."""

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await pipe.enqueue(type, payload, **options)
            return await finished(pipe, receipt.id)

    return run(scenario())


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


# What a handler may raise to steer its job


def test_a_retry_runs_it_again_and_costs_an_attempt(pipe: Jobpipe) -> None:
    @pipe.job("again", max_retries=2)
    async def again() -> None:
        raise Retry(after=0, reason="once more")

    job = run_one(pipe, "again")
    assert (job.status, job.attempts) == (JobStatus.FAILED, 3)
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("Retry", "once more")


def test_a_retry_waits_as_long_as_the_handler_said(pipe: Jobpipe) -> None:
    @pipe.job("again")
    def again() -> None:
        raise Retry(after=7200)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await again.enqueue(id="x")
            job = await reached(pipe, "x", JobStatus.SCHEDULED)
            assert job.attempts == 1
            assert (job.run_at - job.history[0].ended_at).total_seconds() == pytest.approx(7200, abs=1)

    run(scenario())


@pytest.mark.parametrize("signal", [Snooze(0), RateLimited(0.001)], ids=["snooze", "rate limited"])
def test_a_snooze_and_a_rate_limit_cost_no_attempt_and_leave_no_trace(
    pipe: Jobpipe, signal: Exception
) -> None:
    runs = 0

    @pipe.job("sleepy", max_retries=0)
    async def sleepy() -> int:
        nonlocal runs
        runs += 1
        if runs <= 5:
            raise signal
        return runs

    job = run_one(pipe, "sleepy")
    assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, 6)
    assert [attempt.number for attempt in job.history] == [1]


def test_a_snoozed_job_is_scheduled_without_an_attempt(pipe: Jobpipe) -> None:
    @pipe.job("sleepy")
    def sleepy() -> None:
        raise Snooze(3600)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await sleepy.enqueue(id="x")
            job = await reached(pipe, "x", JobStatus.SCHEDULED)
            assert (job.attempts, job.error, job.history) == (0, None, ())

    run(scenario())


@pytest.mark.parametrize(
    "signal", [Retry(1e300), Snooze(1e300), RateLimited(1e300)], ids=["retry", "snooze", "rate"]
)
def test_a_time_beyond_all_calendars_spoils_nothing(pipe: Jobpipe, signal: Exception) -> None:
    @pipe.job
    async def forever() -> None:
        raise signal

    async def scenario() -> None:
        async with pipe, pipe.running():
            await forever.enqueue(id="x")
            assert (await reached(pipe, "x", JobStatus.SCHEDULED)).run_at > instant(2_000_000_000)
            assert len((await pipe.page()).jobs) == 1

    run(scenario())


def test_a_handler_can_cancel_its_job(pipe: Jobpipe) -> None:
    @pipe.job
    async def needless() -> None:
        raise Cancel("nobody wants it")

    job = run_one(pipe, "needless")
    assert (job.status, job.attempts) == (JobStatus.CANCELLED, 1)
    assert job.error is not None
    assert (job.error.type, job.error.message) == ("Cancel", "nobody wants it")


# Deadlines


def test_a_coroutine_is_broken_off_at_its_deadline_and_retried(pipe: Jobpipe) -> None:
    cleaned = []

    @pipe.job("slow", base=0)
    async def slow() -> str:
        if current_job().attempts > 1:
            return "in time"
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)
        raise AssertionError

    job = run_one(pipe, "slow", deadline=0.05)
    assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 2, "in time")
    assert job.history[0].error is not None
    assert job.history[0].error.type == "DeadlineExceeded"
    assert cleaned == [True]


def test_a_function_that_returns_after_its_deadline_has_failed(pipe: Jobpipe) -> None:
    @pipe.job("slow", max_retries=0)
    def slow() -> str:
        context = current_job().context
        assert context.wait(LIMIT), "the deadline ends the wait"
        assert context.done
        return "too late"

    job = run_one(pipe, "slow", deadline=0.05)
    assert (job.status, job.result) == (JobStatus.FAILED, None)
    assert job.error is not None
    assert job.error.type == "DeadlineExceeded"


# Cancelling


def test_a_running_coroutine_is_broken_off_when_it_is_cancelled(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        cancelled = asyncio.Event()

        @pipe.job
        async def work() -> None:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                cancelled.set()
                raise

        async with pipe, pipe.running():
            await work.enqueue(id="x")
            await gate.began.wait()
            await pipe.cancel("x")
            job = await finished(pipe, "x")
            assert (job.status, job.attempts, job.error) == (JobStatus.CANCELLED, 1, None)
            assert cancelled.is_set()

    run(scenario())


def test_a_coroutine_that_ignores_its_cancellation_ends_cancelled_anyway(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()

        @pipe.job
        async def work() -> str:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                pass
            return "done nevertheless"

        async with pipe, pipe.running():
            await work.enqueue(id="x")
            await gate.began.wait()
            await pipe.cancel("x")
            job = await finished(pipe, "x")
            assert (job.status, job.result) == (JobStatus.CANCELLED, None)

    run(scenario())


def test_a_running_function_learns_that_it_was_cancelled_and_ends_so_when_it_returns(pipe: Jobpipe) -> None:
    began = threading.Event()
    stopped = []

    @pipe.job
    def work() -> str:
        began.set()
        stopped.append(current_job().context.wait(LIMIT))
        return "stopped early"

    async def scenario() -> None:
        async with pipe, pipe.running():
            await work.enqueue(id="x")
            await wait_for(began)
            await pipe.cancel("x")
            job = await finished(pipe, "x")
            assert (job.status, job.result) == (JobStatus.CANCELLED, None)
            assert stopped == [True]

    run(scenario())


def test_another_process_can_cancel_a_running_job(sqlite_url: str) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe, other = Jobpipe(sqlite_url), Jobpipe(sqlite_url)

        @pipe.job
        async def work() -> None:
            await gate.pass_through()

        async with pipe, other, pipe.running():
            await work.enqueue(id="x")
            await gate.began.wait()
            await other.cancel("x")
            assert (await finished(pipe, "x")).status is JobStatus.CANCELLED

    run(scenario())


def test_a_cancelled_job_can_be_retried_and_then_runs_to_its_end(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()

        @pipe.job
        async def work() -> str:
            await gate.pass_through()
            return "done"

        async with pipe, pipe.running():
            await work.enqueue(id="x")
            await gate.began.wait()
            await pipe.cancel("x")
            await finished(pipe, "x")
            gate.go.set()
            await pipe.retry("x")
            job = await finished(pipe, "x")
            assert (job.status, job.result, job.attempts) == (JobStatus.DONE, "done", 1)

    run(scenario())


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
