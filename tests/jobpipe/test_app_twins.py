"""Every coroutine of a pipe has a twin for threads: the same call, the same answer, the same errors."""

from __future__ import annotations

import asyncio
import inspect
import threading
from typing import Any

import pytest

from jobpipe import BadInputError, JobNotFoundError, Jobpipe, JobType, ScheduleNotFoundError, ScheduleRequest
from jobpipe.gateway.jobs import Jobs
from jobpipe.gateway.sync import run_now
from jobpipe.gateway.timetable import Timetable

from ..support.waiting import LIMIT, run

CLASSES = [Jobpipe, Jobs, JobType, Timetable]


def coroutines(owner: type[Any]) -> list[str]:
    return [
        name
        for name, member in vars(owner).items()
        if inspect.iscoroutinefunction(member) and not name.startswith("_")
    ]


@pytest.mark.parametrize("owner", CLASSES)
def test_every_coroutine_has_a_twin(owner: type[Any]) -> None:
    names = coroutines(owner)
    assert names
    for name in names:
        twin = getattr(owner, f"{name}_sync")
        assert not inspect.iscoroutinefunction(twin)
        assert inspect.signature(twin) == inspect.signature(getattr(owner, name))
        assert twin.__name__ == f"{name}_sync"
        assert twin.__doc__.startswith(f"`{name}` from any thread")


def use(pipe: Jobpipe) -> None:
    """Each twin once."""
    assert pipe.enqueue_sync("echo", 1, id="a").is_new
    assert [each.id for each in pipe.enqueue_many_sync([])] == []
    assert pipe.get_sync("a").payload == 1
    assert [job.id for job in pipe.page_sync(status="queued").jobs] == ["a"]
    assert pipe.wait_sync("a", timeout=0.01).status == "queued"
    assert pipe.explain_sync("a").reason == "no_worker"
    assert pipe.stats_sync().queued == 1
    assert [each.name for each in pipe.queues_sync()] == ["default"]
    assert (pipe.limits_sync(), pipe.workers_sync()) == ([], [])
    assert pipe.pause_sync("default").paused
    assert not pipe.resume_sync("default").paused
    assert pipe.cancel_sync("a").status == "cancelled"
    assert pipe.retry_sync("a").status == "queued"
    assert (pipe.cancel_many_sync(type="echo"), pipe.retry_many_sync(all=True)) == (1, 1)
    assert (pipe.delete_many_sync(all=True), pipe.failures_sync().failures) == (0, [])
    assert pipe.insert_sync([]) == []
    with pytest.raises(JobNotFoundError):
        pipe.get_sync("nowhere")
    with pytest.raises(BadInputError, match="limit"):
        pipe.page_sync(limit=0)
    schedules = pipe.schedules
    assert schedules.put_sync("tick", ScheduleRequest(type="echo", every=60)).every == 60
    assert [each.name for each in schedules.all_sync()] == ["tick"]
    assert schedules.pause_sync("tick").paused
    assert not schedules.resume_sync("tick").paused
    assert schedules.run_sync("tick").is_new
    schedules.drop_sync("tick")
    with pytest.raises(ScheduleNotFoundError):
        schedules.get_sync("tick")


def test_twins_work_in_a_thread_without_an_event_loop(url: str) -> None:
    pipe = Jobpipe(url)
    errors: list[BaseException] = []

    def body() -> None:
        try:
            use(pipe)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join(LIMIT)
    pipe.close()
    assert errors == []


def test_twins_work_within_an_event_loop(url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(url) as pipe:
            use(pipe)
            assert (await pipe.stats()).queued == 2, "and coroutines go on as before"

    run(scenario())


def test_a_thread_waits_for_a_job_that_runs_elsewhere(url: str) -> None:
    async def scenario() -> None:
        pipe = Jobpipe(url)
        begun, go_on = asyncio.Event(), asyncio.Event()

        @pipe.job
        async def work() -> str:
            begun.set()
            await go_on.wait()
            return "done"

        async with pipe, pipe.running():
            await work.enqueue(id="w")
            waiting = asyncio.create_task(asyncio.to_thread(pipe.wait_sync, "w", LIMIT))
            await begun.wait()
            go_on.set()
            assert (await waiting).result == "done"

    run(scenario())


def test_a_type_enqueues_from_a_thread(url: str) -> None:
    pipe = Jobpipe(url)

    @pipe.job
    def double(number: int) -> int:
        return 2 * number

    assert double.enqueue_sync(3, id="three").id == "three"
    assert len(double.enqueue_many_sync([4, 5])) == 2
    pipe.close()


def test_what_needs_an_event_loop_says_so() -> None:
    with pytest.raises(RuntimeError, match="only an event loop can do"):
        run_now(asyncio.sleep(0))
