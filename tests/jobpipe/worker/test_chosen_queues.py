"""A process runs jobs of chosen queues and types only, and queues may have slots of their own."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from jobpipe import Jobpipe, JobRequest, JobStatus, current_job
from jobpipe.errors import BadInputError, SettingsError
from jobpipe.gateway.explain import Reason

from ...support.gates import AsyncGate
from ...support.jobs import finished, seen
from ...support.waiting import run, until


def requests(queue: str, number: int, type: str = "echo") -> list[JobRequest]:
    return [JobRequest(type=type, id=f"{queue}{n}", queue=queue) for n in range(number)]


@pytest.mark.parametrize(
    ("chosen", "served", "left"),
    [
        ({"queues": ["mail"]}, "mail", "media"),
        ({"queues": "mail, default"}, "mail", "media"),
        ({"queues": {"mail": 2}}, "mail", "media"),
        ({"except_queues": ["media"]}, "mail", "media"),
    ],
    ids=["list", "text", "slots", "except"],
)
def test_only_jobs_of_chosen_queues_run(pipe: Jobpipe, chosen: Any, served: str, left: str) -> None:
    async def scenario() -> None:
        async with pipe, pipe.running(**chosen):
            await pipe.enqueue("echo", id="left", queue=left)
            await pipe.enqueue("echo", id="served", queue=served)
            await finished(pipe, "served")
            assert (await pipe.get("left")).status is JobStatus.QUEUED
            found = await pipe.explain("left")
            assert found.reason is Reason.NO_WORKER
            assert found.text.startswith(f"No worker serves the queue {left!r}:")

    run(scenario())


def test_only_jobs_of_chosen_types_run(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        pipe.job("mine")(lambda: None)
        async with pipe, pipe.running(types=["mine"]):
            await pipe.enqueue("echo", id="left")
            await pipe.enqueue("mine", id="mine")
            await finished(pipe, "mine")
            assert (await pipe.get("left")).status is JobStatus.QUEUED
            (worker,) = await pipe.workers()
            assert worker.types == ("mine",)
            assert (await pipe.explain("left")).text.startswith("No worker knows the type 'echo'")

    run(scenario())


def test_queues_have_slots_of_their_own(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        async with pipe, pipe.running(queues="mail=1,media=2"):
            await pipe.enqueue_many(requests("mail", 4, "block") + requests("media", 4, "block"))
            await seen(pipe, pipe.queues, lambda queues: sum(each.running for each in queues) >= 3)
            assert {each.name: each.running for each in await pipe.queues()} == {"mail": 1, "media": 2}
            assert pipe.service is not None
            assert pipe.service.runner is not None
            info = pipe.service.runner.info
            await until(lambda: info().running_by_queue == {"mail": 1, "media": 2})
            assert (info().slots, info().slots_by_queue) == (3, {"mail": 1, "media": 2})
            assert info().queues == ("mail", "media")
            gate.go.set()
            for request in requests("mail", 4) + requests("media", 4):
                await finished(pipe, str(request.id))

    run(scenario())


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_no_more_run_than_a_queue_has_slots_however_fast_they_end(pipe: Jobpipe, is_async: bool) -> None:
    """Also of those that are claimed ahead."""
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()

    def enter() -> str:
        queue = current_job().queue
        running[queue] += 1
        most[queue] = max(most[queue], running[queue])
        return queue

    async def acount() -> None:
        queue = enter()
        await asyncio.sleep(0)
        running[queue] -= 1

    def count() -> None:
        running[enter()] -= 1

    async def scenario() -> None:
        pipe.job("count")(acount if is_async else count)
        number = 150
        async with pipe, pipe.running(queues={"mail": 3, "media": 1}):
            await pipe.enqueue_many(requests("mail", number, "count") + requests("media", number, "count"))
            for request in requests("mail", number) + requests("media", number):
                assert (await finished(pipe, str(request.id))).status is JobStatus.DONE
        assert most["mail"] <= 3
        assert most["media"] == 1
        if is_async:
            assert most["mail"] == 3

    run(scenario())


def test_a_busy_queue_keeps_none_of_another_waiting(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        async with pipe, pipe.running(queues={"mail": 1, "media": 1}):
            await pipe.enqueue_many(requests("mail", 30, "block"))
            await gate.began.wait()
            for request in requests("media", 5):
                await pipe.enqueue(request.type, id=str(request.id), queue="media")
                await finished(pipe, str(request.id))
            gate.go.set()

    run(scenario())


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({"queues": "a=2,b"}, "^queues must be .*: slots must be given once for every queue or for none"),
        ({"queues": {"a": 0}}, "^queues .*: slots must be whole numbers from 1 to"),
        ({"queues": ["a b"]}, "^queues .*: a name must be 1 to 100 characters"),
        ({"queues": []}, "^queues .*: a name is missing"),
        (
            {"queues": {"a": 2, "b": 1}, "workers": 4},
            "^workers must be the sum of the slots in queues, which is 3",
        ),
        ({"queues": ["a"], "except_queues": ["b"]}, "^except_queues cannot be combined with queues"),
        ({"types": ["ecko"]}, "names 'ecko', a type that the app does not have; did you mean 'echo'"),
    ],
)
def test_what_cannot_be_is_refused(memory: Jobpipe, chosen: Any, words: str) -> None:
    async def scenario() -> None:
        async with memory.running(**chosen):
            pytest.fail("it runs")

    with pytest.raises(SettingsError, match=words):
        run(scenario())


def test_limit_of_a_queue_holds_for_all_its_types(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.queue("mail", concurrency=1)
        pipe.job("one")(gate.pass_through)
        pipe.job("two", queue="mail")(lambda: None)
        async with pipe, pipe.running(workers=4):
            await pipe.enqueue("one", id="one", queue="mail")
            await gate.began.wait()
            await pipe.enqueue("two", id="two")
            await pipe.enqueue("two", id="elsewhere", queue="other")
            await finished(pipe, "elsewhere")
            assert (await pipe.get("two")).status is JobStatus.QUEUED
            found = await pipe.explain("two")
            assert (found.reason, found.blockers) == (Reason.CONCURRENCY, ("one",))
            assert found.text == "1 job of the queue 'mail' runs; at most 1 may run at once."
            (info,) = await pipe.limits()
            assert (info.type, info.queue, info.key, info.concurrency) == (None, "mail", None, 1)
            assert (info.running, info.waiting, info.holders) == (1, 1, ("one",))
            gate.go.set()
            await finished(pipe, "two")

    run(scenario())


def test_rate_of_a_queue_holds_for_all_its_types(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        pipe.queue("mail", rate="1/h")
        pipe.job("mine", rate="100/s")(lambda: None)
        async with pipe, pipe.running(workers=4):
            await pipe.enqueue("echo", id="first", queue="mail")
            await finished(pipe, "first")
            await pipe.enqueue("mine", id="second", queue="mail")
            await pipe.enqueue("mine", id="elsewhere")
            await finished(pipe, "elsewhere")
            found = await pipe.explain("second")
            assert (found.reason, found.blockers) == (Reason.RATE, ("mail",))
            assert found.text.startswith("The rate of the queue 'mail' is 1/h: the next job may start at")
            first, second = await pipe.limits()
            assert (first.queue, first.rate, first.tokens, first.next_at) == ("mail", "1/h", 0.0, found.until)
            assert (second.type, second.queue) == ("mine", None)

    run(scenario())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "^rate or concurrency is required: 'mail' has no other limit"),
        ({"concurrency": 0}, "^concurrency must be a whole number >= 1, got 0"),
        ({"rate": "fast"}, "^rate "),
    ],
)
def test_limits_of_a_queue_that_limit_nothing_are_refused(memory: Jobpipe, options: Any, words: str) -> None:
    with pytest.raises(BadInputError, match=words):
        memory.queue("mail", **options)
    memory.queue("mail", concurrency=1)
    with pytest.raises(BadInputError, match="'mail' has limits already"):
        memory.queue("mail", concurrency=2)
    with pytest.raises(BadInputError, match="must be 1 to 100 characters"):
        memory.queue("a b", concurrency=2)
