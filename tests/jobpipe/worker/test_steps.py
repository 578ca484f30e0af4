"""Steps, sleeps and signals as a handler uses them, in a real runner."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
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
    SignalTimeout,
    StoreAwayError,
    current_job,
)
from jobpipe.model.durable import MOST_RESULTS, MOST_STEPS
from jobpipe.stores.memory import MemoryStore

from ...support.jobs import finished, reached
from ...support.waiting import run
from .conftest import Calls, fails_once, run_handler, run_one


@dataclass
class Receipt:
    number: int
    tags: tuple[str, ...] = ()


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


def test_result_is_what_its_json_says_in_the_first_run_too(memory: Jobpipe, calls: Calls) -> None:
    def pair() -> Any:
        return (1, Receipt(2, ("a",)))

    def receipt() -> Receipt:
        return {"number": 3}  # type: ignore[return-value]

    @memory.job("order")
    async def order() -> None:
        job = current_job()
        found = [await job.step("pair", pair), await job.step("receipt", receipt)]
        assert found == [[1, {"number": 2, "tags": ["a"]}], Receipt(3)]
        fails_once(calls)

    job = run_one(memory, "order")
    assert (job.status, job.attempts) == (JobStatus.DONE, 2), job.error


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


def test_step_that_raises_records_nothing_and_the_job_is_retried(pipe: Jobpipe, calls: Calls) -> None:
    @pipe.job("order", max_retries=1, base=0)
    async def order() -> None:
        def broken() -> None:
            calls.note("broken")
            raise ValueError("broken")

        await current_job().step("s", broken)

    job = run_one(pipe, "order")
    assert job.error is not None
    assert (job.status, job.error.type, job.attempts) == (JobStatus.FAILED, "ValueError", 2)
    assert (job.steps, calls) == ((), ["broken", "broken"])


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

    job = run_handler(memory, order)
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

    assert run_handler(memory, order).result == "fine"


def test_results_and_steps_of_a_job_are_bounded(away_from_home: Path) -> None:
    memory = Jobpipe(MemoryStore())  # which outlives the pipe

    async def order() -> None:
        job = current_job()
        large = "x" * 200_000
        for n in range(MOST_RESULTS // len(large)):
            await job.step(f"{n}", lambda: large)
        with pytest.raises(BadInputError, match="at most 4,194,304 bytes"):
            await job.step("more", lambda: large)

    assert run_handler(memory, order).status is JobStatus.DONE

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


def test_step_is_not_run_if_the_lease_was_lost_while_it_loaded_what_is_recorded(
    memory: Jobpipe, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began beside the one that was told so."""
    real, lost, beside = memory.store.durable, asyncio.Event(), list[asyncio.Task[str]]()

    def durable(id: str) -> Any:
        if calls.note("load") and (
            len(calls) == 1 or (asyncio.current_task() in beside and not lost.is_set())
        ):
            raise StoreAwayError("away")
        return real(id)

    def lose() -> None:
        (record,) = memory.store._ledger.leased.values()  # type: ignore[attr-defined]
        record.lease_until = 0.0
        memory.store.rescue()

    @memory.job("order")
    async def order() -> None:
        if beside:
            return
        job = current_job()
        first = asyncio.create_task(job.step("first", lose))
        beside.append(asyncio.create_task(job.step("second", calls.note, "second")))
        try:
            await first
        except LeaseLostError:
            lost.set()

    async def scenario() -> Job:
        async with memory, memory.running():
            monkeypatch.setattr(memory.store, "durable", durable)
            await memory.enqueue("order", id="o")
            await lost.wait()
            with pytest.raises(LeaseLostError):
                await beside[0]
            return await finished(memory, "o")

    assert run(scenario()).status is JobStatus.DONE
    assert "second" not in calls


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


def test_long_results_are_cut_where_the_whole_job_is_shown(away_from_home: Path) -> None:
    memory = Jobpipe(MemoryStore())  # which outlives the pipe

    async def order() -> None:
        await current_job().step("long", lambda: "ä" * 5_000)

    job = run_handler(memory, order)
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


def test_what_a_step_is_called_with_is_not_kept(memory: Jobpipe) -> None:
    class Large:
        def __call__(self) -> int:
            return 1

        __hash__ = None  # type: ignore[assignment]

    kept: list[Any] = []

    async def order() -> int:
        large = Large()
        kept.append(weakref.ref(large))
        with pytest.raises(BadInputError, match="function must be"):
            await current_job().step("none", [1])  # type: ignore[call-overload]
        return await current_job().step("s", large)

    assert run_handler(memory, order).result == 1
    gc.collect()
    assert kept[0]() is None


def test_step_of_a_coroutine_is_refused_in_a_thread(memory: Jobpipe) -> None:
    async def step() -> None: ...

    def order() -> str:
        with pytest.raises(BadInputError, match="coroutine function"):
            current_job().step_sync("s", step)
        return "refused"

    assert run_handler(memory, order).result == "refused"
