"""One job, or one handler, run by a test: its result is returned, its error raised."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobpipe import BadInputError, Fail, Jobpipe, RateLimited, Retry, Snooze, current_job

from ...support.waiting import run

START = datetime(2026, 3, 1, tzinfo=UTC)


def test_run_returns_the_result_and_raises_the_error(pipe: Jobpipe) -> None:
    seen: list[Any] = []

    class Strange(Exception): ...

    @pipe.job(max_retries=7, queue="media")
    async def resize(path: str, width: int = 640) -> tuple[str, int]:
        job = current_job()
        job.progress(0.5, "half")
        seen.append((job.type, job.queue, job.attempts, job.max_retries, job.worker, bool(job.id)))
        if width < 0:
            raise Strange(path)
        return path, width

    @pipe.job
    def plain(kind: str) -> object:
        raise {
            "snooze": Snooze(5),
            "retry": Retry(),
            "limited": RateLimited(retry_after=1),
            "fail": Fail("no"),
        }[kind]

    @pipe.job
    def bad() -> object:
        return object()

    async def main() -> None:
        async with pipe.testing() as jobs:
            assert await jobs.run(resize, "a_png") == ("a_png", 640)
            assert await jobs.run(resize, "a_png", width=200) == ("a_png", 200)
            with pytest.raises(Strange, match="a_png"):
                await jobs.run(resize, "a_png", -1)
            for kind, error in (
                ("snooze", Snooze),
                ("retry", Retry),
                ("limited", RateLimited),
                ("fail", Fail),
            ):
                with pytest.raises(error):
                    await jobs.run(plain, kind)
            with pytest.raises(BadInputError, match="result"):
                await jobs.run(bad)
            with pytest.raises(BadInputError, match="width"):
                await jobs.run(resize, "a_png", "wide")  # type: ignore[call-overload]
            with pytest.raises(BadInputError, match="job_type must be a job type"):
                await jobs.run(print)  # type: ignore[call-overload]
            assert jobs.all == [], "they leave no trace"
            assert await jobs.drain() == []

    run(main())
    assert seen == [("resize", "media", 1, 7, "testing", True)] * 3


def test_run_runs_no_other_job(pipe: Jobpipe) -> None:
    ran: list[int] = []

    @pipe.job
    def note(n: int) -> None:
        ran.append(n)
        if n == 0:
            note.enqueue_sync(9)

    with pipe.testing() as jobs:
        note.enqueue_sync(1, priority=10)
        jobs.run_sync(note, 0)
        assert ran == [0]
        assert [job.payload for job in jobs.all] == [1, 9]


def test_stamps_are_around_what_is_run(pipe: Jobpipe) -> None:
    told: list[str] = []

    def stamp(inner: Callable[..., Any]) -> Callable[..., Any]:
        async def stamped(context: Any, envelope: Any) -> Any:
            told.append("before")
            try:
                return await inner(context, envelope)
            finally:
                told.append("after")

        return stamped

    @pipe.job(stamps=[stamp])
    async def work() -> str:
        told.append(current_job().type)
        return "done"

    with pipe.testing() as jobs:
        assert jobs.run_sync(work) == "done"
        assert told == ["before", "work", "after"]
        work.enqueue_sync()
        assert [job.result for job in jobs.drain_sync()] == ["done"]
    assert told == ["before", "work", "after"] * 2


def test_a_handler_can_be_called_directly(pipe: Jobpipe) -> None:
    @pipe.job(queue="mail")
    async def send(to: str) -> tuple[str, str, int]:
        current_job().progress(1)
        return to, current_job().queue, current_job().attempts

    @pipe.job
    def plain(to: str) -> str:
        return f"{current_job().type} {to}"

    with pytest.raises(RuntimeError, match="only in a handler"):
        plain("ada")

    async def main() -> None:
        async with pipe.testing() as jobs:
            assert await send("ada") == ("ada", "mail", 1)
            assert plain("ada") == "plain ada"
            assert jobs.all == []

    run(main())
    with pytest.raises(RuntimeError, match="only in a handler"):
        plain("ada")


def test_a_handler_that_calls_another_is_the_same_job(pipe: Jobpipe) -> None:
    @pipe.job
    async def inner() -> str:
        return current_job().type

    @pipe.job
    async def outer() -> str:
        return await inner()

    with pipe.testing() as jobs:
        assert jobs.run_sync(outer) == "outer"


def test_a_handler_that_waits_for_the_clock_moves_it(pipe: Jobpipe) -> None:
    """Nobody else does meanwhile."""

    @pipe.job
    def wait() -> bool:
        return current_job().context.wait(60)

    async def main() -> None:
        async with pipe.testing(start=START) as jobs:
            assert await jobs.run(wait) is False
            assert jobs.now == START + timedelta(minutes=1)
            assert wait() is False
            assert jobs.now == START + timedelta(minutes=2)

    run(main())
    with pipe.testing(start=START) as jobs:
        assert jobs.run_sync(wait) is False
        assert jobs.now == START + timedelta(minutes=1)


def test_a_handler_cannot_run_another_job(pipe: Jobpipe) -> None:
    @pipe.job
    async def greedy() -> None:
        await jobs.run(greedy)

    with pipe.testing() as jobs, pytest.raises(RuntimeError, match="enqueue them"):
        jobs.run_sync(greedy)
