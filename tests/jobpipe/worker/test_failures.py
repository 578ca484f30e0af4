"""`on_failure`: called with each job that has failed for good, whoever failed it; its errors change nothing."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from jobpipe import BadInputError, Fail, Job, Jobpipe

from ...support.jobs import finished
from ...support.waiting import LIMIT, run
from .conftest import run_one

pytestmark = pytest.mark.usefixtures("away_from_home")


def boom(payload: Any) -> None:
    raise ValueError(f"no {payload}")


def test_both_kinds_of_hooks_get_the_failed_job(pipe: Jobpipe) -> None:
    seen: list[tuple[str, Job]] = []

    @pipe.on_failure
    def in_a_thread(job: Job) -> None:
        assert threading.current_thread() is not threading.main_thread()
        seen.append(("plain", job))

    @pipe.on_failure
    async def on_the_loop(job: Job) -> None:
        seen.append(("async", job))

    class Hook:
        async def __call__(self, job: Job) -> None:
            seen.append(("object", job))

    pipe.on_failure(Hook())
    pipe.on_failure(lambda job: on_the_loop(job))  # what it returns is awaited
    pipe.job("work", max_retries=1, base=0)(boom)
    job = run_one(pipe, "work", "way", id="w")
    assert job.status == "failed"
    assert [kind for kind, _ in seen] == ["plain", "async", "object", "async"], "once, not for the retry"
    for _, told in seen:
        assert (told.id, told.type, told.status, told.attempts, told.payload) == (
            "w",
            "work",
            "failed",
            2,
            "way",
        )
        assert told.error is not None
        assert (told.error.type, told.error.message) == ("ValueError", "no way")
        assert told.finished_at is not None


def test_it_is_called_for_every_way_to_fail_and_for_no_other_end(memory: Jobpipe) -> None:
    seen: list[str] = []
    memory.on_failure(lambda job: seen.append(job.id))

    @memory.job("work")
    async def work(what: str) -> Any:
        if what == "fail":
            raise Fail("no")
        return object() if what == "no JSON" else what

    async def scenario() -> None:
        async with memory, memory.running():
            for id in ("fail", "no JSON", "fine"):
                await memory.enqueue("work", id, id=id.replace(" ", "-"))
            await memory.enqueue("work", "later", id="later", delay=60)
            await memory.cancel("later")
            for id in ("fail", "no-JSON", "fine", "later"):
                await finished(memory, id)

    run(scenario())
    assert sorted(seen) == ["fail", "no-JSON"]


def test_it_is_called_again_after_a_retry_by_hand(memory: Jobpipe) -> None:
    seen: list[int] = []
    memory.on_failure(lambda job: seen.append(job.attempts))
    memory.job("work", max_retries=0)(boom)

    async def scenario() -> None:
        async with memory, memory.running():
            await memory.enqueue("work", id="w")
            await finished(memory, "w")
            await memory.retry("w")
            await finished(memory, "w")

    run(scenario())
    assert seen == [1, 1]


def test_its_own_errors_are_logged_and_change_nothing(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str] = []

    @memory.on_failure
    def broken(job: Job) -> None:
        raise RuntimeError("the tracker is away")

    memory.on_failure(lambda job: seen.append(job.id))
    memory.job("work", max_retries=0)(boom)
    job = run_one(memory, "work", id="w")
    assert job.error is not None
    assert (job.status, job.error.type, seen) == ("failed", "ValueError", ["w"])
    assert "on_failure raised for job w (work), which changes nothing" in caplog.text
    assert "the tracker is away" in caplog.text


def test_who_rescues_a_job_at_its_last_attempt_calls_it(pipe: Jobpipe) -> None:
    async def scenario() -> Job:
        told = asyncio.Queue[Job]()

        @pipe.on_failure
        async def tell(job: Job) -> None:
            told.put_nowait(job)

        pipe.job("work", max_retries=0)(boom)
        async with pipe:
            await pipe.enqueue("work", id="w")
            (claim,) = pipe.store.claim("ghost", ["work"], 1, 0.001).claims
            assert claim.id == "w"
            async with pipe.running():
                async with asyncio.timeout(LIMIT):
                    return await told.get()

    job = run(scenario())
    assert job.error is not None
    assert (job.id, job.status, job.error.type) == ("w", "failed", "WorkerLost")


def test_a_process_that_only_serves_calls_it_as_well(pipe: Jobpipe) -> None:
    """It rescues, too."""

    async def scenario() -> str:
        told = asyncio.Queue[str]()

        @pipe.on_failure
        async def tell(job: Job) -> None:
            told.put_nowait(job.id)

        pipe.job("work", max_retries=0)(boom)
        async with pipe:
            await pipe.enqueue("work", id="w")
            pipe.store.claim("ghost", ["work"], 1, 0.001)
            async with pipe.running(workers=0), asyncio.timeout(LIMIT):
                return await told.get()

    assert run(scenario()) == "w"


def test_a_process_that_ends_within_the_hook_leaves_the_call_to_another(sqlite_url: str) -> None:
    """Why: it is called before the failure is recorded."""

    async def scenario() -> None:
        first = Jobpipe(sqlite_url, lease=0.5, grace=0)
        begun = asyncio.Event()

        @first.on_failure
        async def hang(job: Job) -> None:
            assert (await first.get("w")).status == "running"
            begun.set()
            await asyncio.Event().wait()

        first.job("work", max_retries=0)(boom)
        async with first:
            await first.enqueue("work", id="w")
            async with first.running():
                await begun.wait()
            assert (await first.get("w")).status == "running"

        second = Jobpipe(sqlite_url, lease=0.5)
        told = asyncio.Queue[Job]()

        @second.on_failure
        async def tell(job: Job) -> None:
            told.put_nowait(job)

        second.job("work", max_retries=0)(boom)
        async with second, second.running(), asyncio.timeout(LIMIT):
            job = await told.get()
        assert (job.id, job.status) == ("w", "failed")

    run(scenario())


def test_what_is_no_function_is_refused(memory: Jobpipe) -> None:
    wrong: Any = 5
    with pytest.raises(BadInputError, match=r"^on_failure must be a function of the job"):
        memory.on_failure(wrong)
