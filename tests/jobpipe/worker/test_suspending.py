"""Sleeps and signals as a handler uses them, in a real runner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Job,
    JobNotFoundError,
    Jobpipe,
    JobStatus,
    PayloadTooLargeError,
    SignalRefusedError,
    SignalTimeout,
    WrongStatusError,
    current_job,
)

from ...support.jobs import finished, reached
from ...support.waiting import run
from .conftest import Calls, fails_once, run_handler, run_one


def test_sleep_frees_the_slot_and_costs_no_attempt(pipe: Jobpipe) -> None:
    runs: list[int] = []

    @pipe.job("sleeper")
    async def sleeper() -> int:
        runs.append(current_job().attempts)
        await current_job().sleep("nap", timedelta(seconds=0.3))
        return len(runs)

    async def scenario() -> Job:
        async with pipe, pipe.running(workers=1):
            await pipe.enqueue("sleeper", id="s")
            await reached(pipe, "s", JobStatus.SCHEDULED)
            assert (await pipe.explain("s")).reason == "sleep"
            await pipe.enqueue("echo", 1, id="e")
            echo = await finished(pipe, "e")
            job = await finished(pipe, "s")
            assert echo.finished_at is not None
            assert job.started_at is not None
            assert echo.finished_at <= job.started_at, "it ran while the other slept"
            return job

    job = run(scenario())
    assert (job.result, job.attempts, runs, len(job.history)) == (2, 1, [1, 1], 1)
    assert job.steps == ()


def test_signal_lets_a_waiting_job_go_on(pipe: Jobpipe) -> None:
    @pipe.job("order")
    async def order() -> list[Any]:
        job = current_job()
        answer = await job.wait_for("approved", timeout=3600)
        return [answer, await job.wait_for("approved")]

    async def scenario() -> Job:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            await reached(pipe, "o", JobStatus.WAITING)
            explanation = await pipe.explain("o")
            assert (explanation.reason, explanation.blockers) == ("signal", ("approved",))
            assert explanation.until is not None
            receipt = await pipe.signal("o", "approved", {"by": "Ada"})
            assert (receipt.id, receipt.name, receipt.is_new) == ("o", "approved", True)
            job = await finished(pipe, "o")
            assert not (await pipe.signal("o", "approved", {"by": "Ada"})).is_new
            return job

    job = run(scenario())
    assert (job.result, job.attempts) == ([{"by": "Ada"}, {"by": "Ada"}], 1)


def test_timeout_is_raised_in_every_later_run(pipe: Jobpipe, calls: Calls) -> None:
    @pipe.job("order")
    async def order() -> str:
        try:
            await current_job().wait_for("go", timeout=0.05)
        except SignalTimeout as error:
            calls.note(error.name)
        fails_once(calls)
        return "gave up"

    async def scenario() -> Job:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            return await finished(pipe, "o")

    assert run(scenario()).result == "gave up"
    assert calls == ["go", "failed", "go"]


def test_timeout_that_is_not_caught_fails_the_job_and_a_retry_waits_anew(pipe: Jobpipe) -> None:
    @pipe.job("order", max_retries=5)
    async def order() -> Any:
        return await current_job().wait_for("go", timeout=0.2)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            job = await finished(pipe, "o")
            assert job.error is not None
            assert (job.status, job.error.type, job.attempts) == (JobStatus.FAILED, "SignalTimeout", 1)
            with pytest.raises(WrongStatusError, match="receive signals"):
                await pipe.signal("o", "go")
            await pipe.retry("o")
            await pipe.signal("o", "go", 1)
            assert (await finished(pipe, "o")).result == 1

    run(scenario())


def test_signals_are_refused_with_a_reason(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        async with pipe:
            await pipe.enqueue("echo", id="a", delay=60)
            with pytest.raises(JobNotFoundError):
                await pipe.signal("nosuch", "go")
            for name in ("", "a b", "x" * 201):
                with pytest.raises(BadInputError, match="name must be"):
                    await pipe.signal("a", name)
            with pytest.raises(BadInputError):
                await pipe.signal("a", "go", object())
            with pytest.raises(PayloadTooLargeError):
                await pipe.signal("a", "go", "x" * 300_000)
            await pipe.signal("a", "go", 1)
            with pytest.raises(SignalRefusedError, match="with other content"):
                await pipe.signal("a", "go", 2)
            pipe.signal_sync("a", "go", 1)

    run(scenario())


def test_suspension_passes_what_catches_exceptions(pipe: Jobpipe, calls: Calls) -> None:
    @pipe.job("order")
    async def order() -> str:
        try:
            await current_job().sleep("nap", 0.01)
        except Exception:
            calls.note("caught")
        finally:
            calls.note("finally")
        return "fine"

    assert run_one(pipe, "order").result == "fine"
    assert calls == ["finally", "finally"]


def test_suspension_within_a_task_group_ends_its_tasks(pipe: Jobpipe, calls: Calls) -> None:
    @pipe.job("order")
    async def order() -> str:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.sleep(60 if not calls else 0))
            calls.note("run")
            await current_job().sleep("nap", 0.01)
            await task
        return "fine"

    job = run_one(pipe, "order")
    assert (job.result, job.attempts, len(calls)) == ("fine", 1, 2)


def test_suspension_that_is_swallowed_is_an_error(memory: Jobpipe) -> None:
    async def order() -> str:
        try:
            await current_job().sleep("nap", 60)
        except BaseException:
            with pytest.raises(RuntimeError, match="went on after it was suspended"):
                await current_job().step("s", int)
        return "fine"

    job = run_handler(memory, order)
    assert job.error is not None
    assert (job.status, "went on after it was suspended" in job.error.message) == (JobStatus.FAILED, True)


def test_sleep_and_wait_work_only_in_the_handler_itself(memory: Jobpipe) -> None:
    async def order() -> int:
        job = current_job()
        calls: list[Callable[[], Any]] = [lambda: job.sleep("n", 1), lambda: job.wait_for("n")]
        for call in calls:

            async def elsewhere(call: Callable[[], Any] = call) -> str:
                with pytest.raises(RuntimeError, match="only in the handler itself"):
                    await call()
                return "refused"

            assert await asyncio.create_task(elsewhere()) == "refused"
            assert await job.step(f"step-{calls.index(call)}", elsewhere) == "refused"

        def in_thread() -> str:
            with pytest.raises(RuntimeError, match="only in the handler itself"):
                job.sleep_sync("n", 1)
            return "refused"

        assert await asyncio.to_thread(in_thread) == "refused"
        assert await job.step("thread", in_thread) == "refused"
        return 1

    assert run_handler(memory, order).result == 1


def test_stamps_stand_around_every_run(memory: Jobpipe, calls: Calls) -> None:
    def stamp(inner: Any) -> Any:
        async def stamped(context: Any, envelope: Any) -> Any:
            calls.note("in")
            try:
                return await asyncio.wait_for(inner(context, envelope), 60)
            finally:
                calls.note("out")

        return stamped

    @memory.job("async", stamps=[stamp])
    async def order() -> str:
        await current_job().sleep("nap", 0.01)
        return "fine"

    @memory.job("plain", stamps=[stamp], deadline=60)
    def plain() -> str:
        current_job().sleep_sync("nap", 0.01)
        return "fine"

    for name in ("async", "plain"):
        assert run_one(memory, name).result == "fine"
    assert calls == ["in", "out"] * 4


def test_cancelling_a_waiting_or_sleeping_job_is_final_and_keeps_its_steps(
    pipe: Jobpipe, calls: Calls
) -> None:
    @pipe.job("order")
    async def order() -> str:
        await current_job().step("s", calls.note, "step")
        await current_job().wait_for("go")
        return "fine"

    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            await reached(pipe, "o", JobStatus.WAITING)
            job = await pipe.cancel("o")
            assert (job.status, len(job.steps)) == (JobStatus.CANCELLED, 1)
            await pipe.retry("o")
            await reached(pipe, "o", JobStatus.WAITING)
            await pipe.signal("o", "go")
            assert (await finished(pipe, "o")).result == "fine"

    run(scenario())
    assert calls == ["step"]


def test_durable_state_survives_a_restart(sqlite_url: str, calls: Calls) -> None:
    def make() -> Jobpipe:
        pipe = Jobpipe(sqlite_url)

        @pipe.job("order")
        async def order() -> Any:
            job = current_job()
            await job.step("s", calls.note, "step")
            await job.sleep("nap", 0.2)
            return await job.wait_for("go", timeout=60)

        return pipe

    async def scenario() -> None:
        async with make() as pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            await reached(pipe, "o", JobStatus.SCHEDULED)
        async with make() as pipe, pipe.running():
            await reached(pipe, "o", JobStatus.WAITING)
        async with make() as pipe:
            await pipe.signal("o", "go", "on")
        async with make() as pipe, pipe.running():
            assert (await finished(pipe, "o")).result == "on"

    run(scenario())
    assert calls == ["step"]


def test_deadline_counts_one_run(memory: Jobpipe) -> None:
    async def order() -> str:
        for n in range(3):
            await current_job().sleep(f"nap-{n}", 0.2)
        return "fine"

    job = run_handler(memory, order, deadline=0.5)
    assert job.result == "fine", job.error
    assert job.finished_at is not None
    assert (job.finished_at - job.created_at).total_seconds() > 0.5


def test_signals_have_names_of_their_own(memory: Jobpipe) -> None:
    async def order() -> list[Any]:
        job = current_job()
        await job.sleep("nap", 0)
        return [await job.step("go", lambda: 1), await job.wait_for("go"), await job.wait_for("nap")]

    memory.job("order")(order)

    async def scenario() -> Job:
        async with memory, memory.running():
            await memory.enqueue("order", id="o")
            await memory.signal("o", "go", 2)
            await memory.signal("o", "nap", 3)
            return await finished(memory, "o")

    assert run(scenario()).result == [1, 2, 3]
