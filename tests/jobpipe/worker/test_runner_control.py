"""What ends or steers a run: signals that a handler raises, deadlines and cancellation."""

from __future__ import annotations

import asyncio
import threading

import pytest

from jobpipe import (
    Cancel,
    Jobpipe,
    JobStatus,
    Retry,
    Snooze,
    current_job,
)
from jobpipe.model.job import instant
from rate_envelope_queue import RateLimited

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached
from ...support.waiting import LIMIT, run, wait_for
from .conftest import run_one

# What a handler may raise to control its job


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
