"""Steps, sleeps and signals as a handler uses them, in a real runner."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    Job,
    JobNotFoundError,
    Jobpipe,
    JobStatus,
    LeaseLostError,
    PayloadTooLargeError,
    Retry,
    SignalRefusedError,
    SignalTimeout,
    WrongStatusError,
    current_job,
)
from jobpipe.model.durable import MOST_RESULTS, MOST_STEPS
from jobpipe.stores.memory import MemoryStore

from ...support.jobs import finished, reached
from ...support.waiting import run
from .conftest import run_one

Scenario = Callable[[], Any]


@dataclass
class Receipt:
    number: int
    tags: tuple[str, ...] = ()


class Calls(list[str]):
    """The functions that were called."""

    def note(self, name: str) -> str:
        self.append(name)
        return name


@pytest.fixture
def calls() -> Calls:
    return Calls()


def fails_once(calls: Calls) -> None:
    if "failed" not in calls:
        calls.append("failed")
        raise Retry(after=0)


def test_recorded_step_is_not_called_again(pipe: Jobpipe, calls: Calls) -> None:
    async def charge(amount: int) -> Receipt:
        calls.note("charge")
        return Receipt(amount, ("a",))

    def ship(number: int, *, fast: bool) -> Receipt:
        assert threading.current_thread() is not threading.main_thread()
        assert current_job().id == "o"
        calls.note("ship")
        return Receipt(number + fast)

    @pipe.job("order")
    async def order() -> list[int]:
        job = current_job()
        charged = await job.step("charge", charge, 7)
        shipped = await job.step("ship", ship, 1, fast=True)
        assert charged == Receipt(7, ("a",))
        fails_once(calls)
        return [charged.number, shipped.number]

    job = run_one(pipe, "order", id="o")
    assert (job.status, job.result, job.attempts) == (JobStatus.DONE, [7, 2], 2)
    assert calls == ["charge", "ship", "failed"]
    assert [(step.name, step.result) for step in job.steps] == [
        ("charge", {"number": 7, "tags": ["a"]}),
        ("ship", {"number": 2, "tags": []}),
    ]
    assert all(step.ended_at >= step.began_at >= job.created_at for step in job.steps)


def test_plain_handler_has_the_twins(pipe: Jobpipe, calls: Calls) -> None:
    @pipe.job("order")
    def order() -> str:
        job, thread = current_job(), threading.get_ident()

        def step() -> int:
            assert threading.get_ident() == thread
            return len(calls.note("step"))

        assert job.step_sync("step", step) == 4
        job.sleep_sync("nap", 0.01)
        fails_once(calls)
        with pytest.raises(SignalTimeout):
            job.wait_for_sync("never", timeout=timedelta(milliseconds=10))
        return str(job.wait_for_sync("go"))

    async def scenario() -> Job:
        async with pipe, pipe.running():
            await pipe.enqueue("order", id="o")
            await pipe.signal("o", "go", "on")
            return await finished(pipe, "o")

    job = run(scenario())
    assert (job.status, job.result) == (JobStatus.DONE, "on")
    assert calls == ["step", "failed"]


def test_step_that_raised_may_be_called_again(pipe: Jobpipe, calls: Calls) -> None:
    async def flaky() -> str:
        if calls.count("flaky") < 2:
            calls.note("flaky")
            raise OSError("away")
        return "there"

    @pipe.job("order")
    async def order() -> str:
        job = current_job()
        while True:
            try:
                return await job.step("flaky", flaky)
            except OSError:
                pass

    job = run_one(pipe, "order")
    assert (job.result, job.attempts, calls) == ("there", 1, ["flaky", "flaky"])


def test_steps_may_run_side_by_side(pipe: Jobpipe) -> None:
    async def number(n: int) -> int:
        await asyncio.sleep(0)
        return n

    @pipe.job("order")
    async def order() -> list[int]:
        job = current_job()
        return list(await asyncio.gather(*(job.step(f"page-{n}", number, n) for n in range(20))))

    job = run_one(pipe, "order")
    assert job.result == list(range(20))
    assert {step.name for step in job.steps} == {f"page-{n}" for n in range(20)}


def refused(pipe: Jobpipe, body: Callable[[], Any]) -> Job:
    """Run a job whose handler is that, without retries."""
    pipe.job("order", max_retries=0)(body)
    return run_one(pipe, "order")


def test_name_is_used_once_in_a_run(memory: Jobpipe) -> None:
    async def order() -> list[str]:
        job, errors = current_job(), []
        await job.step("s", int)
        await job.sleep("nap", 0)
        for again in (lambda: job.step("s", int), lambda: job.sleep("s", 1), lambda: job.step("nap", int)):
            with pytest.raises(BadInputError) as caught:
                await again()
            errors.append(caught.value.field)
        for name in ("", "a b", "x" * 201, None):
            with pytest.raises(BadInputError, match="name must be"):
                await job.step(name, int)  # type: ignore[call-overload]
        return errors

    job = refused(memory, order)
    assert job.result == ["name", "name", "name"], job.error


@pytest.mark.parametrize("returned", [object(), float("nan"), {"x": "\0"}, "x" * 300_000])
def test_result_that_cannot_be_recorded_fails_the_job_at_once(memory: Jobpipe, returned: Any) -> None:
    @memory.job("order", max_retries=5)
    async def order() -> None:
        await current_job().step("s", lambda: returned)

    job = run_one(memory, "order")
    assert (job.status, job.attempts, job.steps) == (JobStatus.FAILED, 1, ())
    assert job.error is not None
    assert (job.error.type, "the result of step 's'" in job.error.message) == ("StepResultError", True)


def test_result_that_cannot_be_recorded_may_be_caught(memory: Jobpipe) -> None:
    async def order() -> str:
        with pytest.raises(BadInputError):
            await current_job().step("s", object)
        return "fine"

    assert refused(memory, order).result == "fine"


def test_results_and_steps_of_a_job_are_bounded(away_from_home: Path) -> None:
    memory = Jobpipe(MemoryStore())  # which outlives the pipe

    async def order() -> None:
        job = current_job()
        large = "x" * 200_000
        for n in range(MOST_RESULTS // len(large)):
            await job.step(f"{n}", lambda: large)
        with pytest.raises(BadInputError, match="at most 4,194,304 bytes"):
            await job.step("more", lambda: large)

    assert refused(memory, order).status is JobStatus.DONE

    async def many() -> None:
        job = current_job()
        for n in range(MOST_STEPS):
            await job.step(f"{n}", int)
        with pytest.raises(BadInputError, match="at most 1,000 steps"):
            await job.step("more", int)
        with pytest.raises(BadInputError, match="at most 1,000 steps"):
            await job.sleep("more", 1)

    memory.job("many", max_retries=0)(many)
    job = run_one(memory, "many")
    assert (job.status, len(job.steps)) == (JobStatus.DONE, 50)
    assert len(memory.steps_sync(job.id)) == MOST_STEPS


def test_recorded_result_that_no_longer_fits_fails_the_job(memory: Jobpipe, calls: Calls) -> None:
    def first() -> str:
        return "text"

    def second() -> int:
        return 1

    @memory.job("order", max_retries=5)
    async def order() -> None:
        await current_job().step("s", second if "failed" in calls else first)
        fails_once(calls)

    job = run_one(memory, "order")
    assert job.error is not None
    assert (job.status, job.error.type) == (JobStatus.FAILED, "StepResultError")


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

    job = refused(memory, order)
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

    assert refused(memory, order).result == 1


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


def test_worker_that_lost_its_lease_records_nothing(memory: Jobpipe, calls: Calls) -> None:
    """As if it had been frozen for longer than its lease."""
    gate = asyncio.Event()
    errors: list[type[BaseException]] = []

    @memory.job("order")
    async def order() -> None:
        job = current_job()
        if calls.note("run") and len(calls) > 1:
            return
        await gate.wait()
        for attempt in (lambda: job.step("s", int), lambda: job.wait_for("go"), lambda: job.sleep("n", 1)):
            try:
                await attempt()
            except LeaseLostError as error:
                errors.append(type(error))

    async def scenario() -> Job:
        async with memory, memory.running():
            await memory.enqueue("order", id="o")
            await reached(memory, "o", JobStatus.RUNNING)
            (record,) = memory.store._ledger.leased.values()  # type: ignore[attr-defined]
            record.lease_until = 0.0
            memory.store.rescue()
            gate.set()
            job = await finished(memory, "o")
            assert job.steps == ()
            return job

    assert run(scenario()).status is JobStatus.DONE
    assert errors == [LeaseLostError] * 3


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


def test_retry_from_the_start_runs_the_steps_again(pipe: Jobpipe, calls: Calls) -> None:
    @pipe.job("order", max_retries=0)
    async def order(value: int) -> None:
        await current_job().step("s", calls.note, f"step-{value}")
        await current_job().wait_for("go")
        raise ValueError("broken")

    async def scenario() -> None:
        async with pipe, pipe.running():
            await pipe.enqueue("order", 1, id="o")
            await pipe.signal("o", "go")
            await finished(pipe, "o")
            await pipe.retry("o")
            await finished(pipe, "o")
            assert calls == ["step-1"]
            await pipe.retry("o", from_start=True)
            await reached(pipe, "o", JobStatus.WAITING)
            assert calls == ["step-1", "step-1"]
            await pipe.signal("o", "go")
            await finished(pipe, "o")
            await pipe.retry("o", payload=2)
            await reached(pipe, "o", JobStatus.WAITING)
            assert calls == ["step-1", "step-1", "step-2"]

    run(scenario())


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


def test_long_results_are_cut_where_the_whole_job_is_shown(away_from_home: Path) -> None:
    memory = Jobpipe(MemoryStore())  # which outlives the pipe

    async def order() -> None:
        await current_job().step("long", lambda: "ä" * 5_000)

    job = refused(memory, order)
    (step,) = job.steps
    assert step.cut
    assert isinstance(step.result, str)
    assert len(step.result.encode()) in (4_095, 4_096)
    (whole,) = memory.steps_sync(job.id)
    assert (whole.cut, whole.result) == (False, "ä" * 5_000)
    with pytest.raises(JobNotFoundError):
        memory.steps_sync("nosuch")


def test_store_that_is_away_for_a_while_costs_no_step(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    from jobpipe import StoreAwayError

    store, failures = memory.store, ["write_steps", "durable", "receive"]

    def away(name: str) -> Callable[..., Any]:
        real = getattr(store, name)

        def verb(*args: Any) -> Any:
            if name in failures:
                failures.remove(name)
                raise StoreAwayError("away")
            return real(*args)

        return verb

    for name in failures:
        monkeypatch.setattr(store, name, away(name))

    async def order() -> Any:
        assert await current_job().step("s", int) == 0
        return await current_job().wait_for("go")

    memory.job("order", max_retries=0)(order)

    async def scenario() -> Job:
        async with memory, memory.running():
            await memory.enqueue("order", id="o")
            await memory.signal("o", "go", 1)
            return await finished(memory, "o")

    job = run(scenario())
    assert (job.result, failures) == (1, [])


def test_step_of_a_coroutine_is_refused_in_a_thread(memory: Jobpipe) -> None:
    async def step() -> None: ...

    def order() -> str:
        with pytest.raises(BadInputError, match="coroutine function"):
            current_job().step_sync("s", step)
        return "refused"

    assert refused(memory, order).result == "refused"
