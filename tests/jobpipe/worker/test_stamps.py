"""Stamps around handlers: those of the pipe outside, those of the type inside, for both kinds of handlers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import pytest

from jobpipe import BadInputError, Job, Jobpipe, RateLimited, Snooze, current_job
from rate_envelope_queue import Context, Envelope, before_after_stamp, logging_stamp, stamp

from ...support.jobs import finished
from ...support.waiting import LIMIT, run
from .conftest import run_one

pytestmark = pytest.mark.usefixtures("away_from_home")


class Notes:
    """Stamps that write down what they see."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def stamp(self, name: str) -> Any:
        @stamp
        def noted(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
            self.lines.append(f"{name} begins {current_job().id}")
            try:
                yield
            finally:
                self.lines.append(f"{name} ends {envelope.type} {envelope.payload}")

        return noted

    def coroutine_stamp(self, name: str) -> Any:
        def outer(inner: Any) -> Any:
            async def call(ctx: Context, envelope: Envelope[Any]) -> Any:
                self.lines.append(f"{name} begins {current_job().id}")
                await asyncio.sleep(0)
                try:
                    return [name, await inner(ctx, envelope)]
                finally:
                    self.lines.append(f"{name} ends {envelope.type} {envelope.payload}")

            return call

        return outer


@pytest.mark.parametrize("deadline", [None, 60])
@pytest.mark.parametrize("is_async", [True, False])
def test_the_pipe_s_are_outside_the_type_s_inside(url: str, is_async: bool, deadline: float | None) -> None:
    notes = Notes()
    pipe = Jobpipe(url, stamps=[notes.stamp("outer"), notes.coroutine_stamp("second")])

    def plain(number: int) -> int:
        assert threading.current_thread() is not threading.main_thread(), "in a thread, as without stamps"
        notes.lines.append(f"handler of {current_job().id}")
        return number + 1

    async def coroutine(number: int) -> int:
        notes.lines.append(f"handler of {current_job().id}")
        return number + 1

    pipe.job("work", stamps=[notes.coroutine_stamp("inner")], deadline=deadline)(
        coroutine if is_async else plain
    )
    job = run_one(pipe, "work", 1, id="w")
    assert (job.status, job.result) == ("done", ["second", ["inner", 2]])
    assert notes.lines == [
        "outer begins w",
        "second begins w",
        "inner begins w",
        "handler of w",
        "inner ends work 1",
        "second ends work 1",
        "outer ends work 1",
    ]


@pytest.mark.parametrize("is_async", [True, False])
def test_a_stamp_sees_the_handler_s_error_and_may_swallow_it(memory: Jobpipe, is_async: bool) -> None:
    seen: list[BaseException] = []

    @stamp
    def swallow(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
        try:
            yield
        except ValueError as error:
            seen.append(error)

    def plain() -> None:
        raise ValueError("no")

    async def coroutine() -> None:
        raise ValueError("no")

    memory.job("work", stamps=[swallow])(coroutine if is_async else plain)
    job = run_one(memory, "work")
    assert (job.status, job.result) == ("done", None)
    assert [str(error) for error in seen] == ["no"]


def test_what_a_stamp_raises_is_the_error_of_the_run(memory: Jobpipe) -> None:
    @stamp
    def refuse(ctx: Context, envelope: Envelope[Any]) -> Generator[None, Any, None]:
        raise LookupError("not today")
        yield

    memory.job("work", stamps=[refuse], fail_on=LookupError)(lambda: None)
    job = run_one(memory, "work")
    assert job.error is not None
    assert (job.status, job.error.type, job.error.message) == ("failed", "LookupError", "not today")


def test_signals_pass_through_stamps(memory: Jobpipe) -> None:
    notes, runs = Notes(), list[int]()

    @memory.job("work", stamps=[notes.stamp("s")])
    async def work() -> str:
        runs.append(1)
        if len(runs) == 1:
            raise Snooze(0)
        if len(runs) == 2:
            raise RateLimited(0.001)
        return "done"

    job = run_one(memory, "work")
    assert (job.status, job.attempts, len(runs)) == ("done", 1, 3)
    assert len(notes.lines) == 6, "anew for each run"


def test_a_deadline_breaks_off_what_stamps_surround(memory: Jobpipe) -> None:
    notes = Notes()

    @memory.job("work", stamps=[notes.stamp("s")], deadline=0.05, max_retries=0)
    async def work() -> None:
        await asyncio.sleep(LIMIT)

    job = run_one(memory, "work")
    assert job.error is not None
    assert (job.status, job.error.type) == ("failed", "DeadlineExceeded")
    assert notes.lines[-1] == "s ends work None"


def test_the_stamps_of_the_library_work(memory: Jobpipe, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    async def before(ctx: Context, envelope: Envelope[Any]) -> None:
        calls.append(f"before {current_job().id}")

    def after(ctx: Context, envelope: Envelope[Any]) -> None:
        calls.append(f"after {current_job().id}")

    memory.job("work", stamps=[logging_stamp(), before_after_stamp(before, after)])(lambda: "result")
    with caplog.at_level("INFO", "rate_envelope_queue"):
        job = run_one(memory, "work", id="w")
    assert (job.result, calls) == ("result", ["before w", "after w"])
    assert "type='work' id='w'" in caplog.text


def test_the_built_in_types_have_the_pipe_s_stamps(url: str) -> None:
    notes = Notes()
    assert run_one(Jobpipe(url, stamps=[notes.stamp("s")]), "echo", 5).result == 5
    assert len(notes.lines) == 2


@pytest.mark.parametrize("stamps", [5, "x", [5], [None]], ids=ascii)
def test_what_is_no_stamp_is_refused(memory: Jobpipe, stamps: Any) -> None:
    with pytest.raises(BadInputError, match=r"^stamps must be a list of stamps"):
        memory.job("work", stamps=stamps)
    with pytest.raises(BadInputError, match=r"^stamps "):
        Jobpipe("memory://", stamps=stamps)


def test_a_job_with_stamps_can_be_cancelled(memory: Jobpipe) -> None:
    begun = asyncio.Event()

    @memory.job("work", stamps=[Notes().stamp("s")])
    async def work() -> None:
        begun.set()
        await asyncio.sleep(LIMIT)

    async def scenario() -> Job:
        async with memory, memory.running():
            await memory.enqueue("work", id="w")
            await begun.wait()
            await memory.cancel("w")
            return await finished(memory, "w")

    assert run(scenario()).status == "cancelled"
