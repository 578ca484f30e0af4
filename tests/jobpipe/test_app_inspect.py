"""Inspecting jobs from Python, on memory and on SQLite: pages, statistics, waits, and why a job is not running."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    JobNotFoundError,
    Jobpipe,
    JobStatus,
    Reason,
)
from jobpipe.stores.base import JobEvent, WorkerInfo
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing.tools import finish, take

from ..support.jobs import lead_to, one_of_each
from ..support.waiting import LIMIT, run
from .conftest import On


@pytest.mark.parametrize("verb", ["get", "wait", "explain", "cancel", "retry"])
def test_id_that_is_no_text_is_refused(on: On, verb: str) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        with pytest.raises(BadInputError, match="id must be a string, got 5"):
            await getattr(pipe, verb)(5)

    on(scenario)


# Pages, statistics, waits


def test_an_unknown_job_is_not_found(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for call in (pipe.get, pipe.explain, pipe.cancel, pipe.retry, pipe.wait):
            with pytest.raises(JobNotFoundError) as caught:
                await call("nobody")
            assert caught.value.id == "nobody"

    on(scenario)


def test_pages_are_newest_first_and_follow_each_other(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for number in range(5):
            await pipe.enqueue("echo", {"big": 1}, id=f"j{number}")
        first = await pipe.page(limit=2)
        assert [job.id for job in first.jobs] == ["j4", "j3"]
        assert all(job.payload is None for job in first.jobs)
        await pipe.enqueue("echo", id="new")
        second = await pipe.page(limit=2, cursor=first.next_cursor)
        assert [job.id for job in second.jobs] == ["j2", "j1"]
        last = await pipe.page(limit=2, cursor=second.next_cursor)
        assert [job.id for job in last.jobs] == ["j0"]
        assert last.next_cursor is None

    on(scenario)


def test_pages_can_be_filtered(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", id="a", queue="one")
        await pipe.enqueue("sleep", 1, id="b", queue="one")
        await pipe.enqueue("sleep", 1, id="c", delay=60)

        async def ids(**filter: Any) -> list[str]:
            return [job.id for job in (await pipe.page(**filter)).jobs]

        assert await ids(type="sleep") == ["c", "b"]
        assert await ids(queue="one") == ["b", "a"]
        assert await ids(status="scheduled") == await ids(status=JobStatus.SCHEDULED) == ["c"]
        assert await ids(status="queued", type="sleep", queue="one") == ["b"]
        assert await ids(queue="nowhere") == []

    on(scenario)


WRONG_PAGES: list[tuple[str, Any]] = [
    *[("limit", value) for value in (0, 501, -1, "5", 1.5, True, None)],
    *[("cursor", value) for value in ("", "x", "-1", "1.5", "٣", "9" * 19, 5, "1 OR 1=1")],
    *[("status", value) for value in ("pending", "", "DONE", 1)],
    *[("type", value) for value in ("", "a b")],
    *[("queue", value) for value in ("a\n", 5)],
    *[(field, value) for field in ("error", "text") for value in ("", "a" * 201, "\0", "\ud800", 5)],
]


@pytest.mark.parametrize(("field", "value"), WRONG_PAGES, ids=ascii)
def test_a_wrong_page_is_refused_by_field(on: On, field: str, value: Any) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        with pytest.raises(BadInputError) as caught:
            await pipe.page(**{field: value})
        assert caught.value.field == field

    on(scenario)


def test_a_text_is_found_in_ids_tags_and_errors(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobpipe.gateway.jobs._SEARCHED_AT_ONCE", 4)
    monkeypatch.setattr("jobpipe.gateway.jobs.MOST_SEARCHED", 8)

    async def scenario(pipe: Jobpipe) -> None:
        await lead_to(pipe, JobStatus.FAILED, "unlucky")
        failed = (await pipe.get("unlucky")).error
        assert failed is not None
        for number in range(9):
            tags = ["Straße-7"] if number % 3 == 0 else []
            await pipe.enqueue("echo", id=f"Order-{number}", queue=f"q{number % 2}", tags=tags)

        async def ids(text: str, **more: Any) -> tuple[list[str], str | None]:
            page = await pipe.page(text=text, **more)
            return [job.id for job in page.jobs], page.next_cursor

        found, cursor = await ids("order-")
        assert found == [f"Order-{number}" for number in range(8, 0, -1)], "eight were searched"
        assert await ids("order-", cursor=cursor) == (["Order-0"], None)
        assert (await ids("STRASSE"))[0] == ["Order-6", "Order-3"]
        assert (await ids("order", queue="q1"))[0] == [f"Order-{number}" for number in (7, 5, 3, 1)]
        walked: list[str] = []
        found, cursor = await ids("rder", limit=3)
        while cursor is not None:
            walked += found
            found, cursor = await ids("rder", limit=3, cursor=cursor)
        assert walked + found == [f"Order-{number}" for number in range(8, -1, -1)]
        for part in (failed.type.upper(), failed.message[1:], "nluck"):
            assert (await ids(part, status="failed"))[0] == ["unlucky"]
        assert await ids("%", status="failed") == ([], None)

    on(scenario, queue_size=0)


def test_failures_are_told_in_groups(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        found = await pipe.failures()
        job = await pipe.get("failed")
        assert job.error is not None
        assert (found.counted, found.is_complete) == (1, True)
        (group,) = found.failures
        assert (group.type, group.error, group.count, group.last_id) == (job.type, job.error.type, 1, job.id)
        assert group.first_at == group.last_at == job.finished_at

    on(scenario)


def test_the_statistics_count_every_status(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        await pipe.enqueue("echo", queue="other")
        stats = await pipe.stats()
        assert (stats.scheduled, stats.waiting, stats.queued, stats.running) == (1, 1, 2, 1)
        assert (stats.done, stats.failed, stats.cancelled) == (1, 1, 1)
        assert stats.per_second == dict.fromkeys(map(str, JobStatus), 0.0)

    on(scenario)


def test_the_queues_are_told_by_name(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await lead_to(pipe, JobStatus.DONE)
        await lead_to(pipe, JobStatus.RUNNING, queue="b")
        await pipe.enqueue("echo", queue="a", delay=60)
        await pipe.enqueue("echo", queue="a")
        await pipe.pause("empty")
        found = [
            (info.name, info.paused, info.scheduled, info.queued, info.running)
            for info in await pipe.queues()
        ]
        assert found == [
            ("a", False, 1, 1, 0),
            ("b", False, 0, 0, 1),
            ("default", False, 0, 0, 0),
            ("empty", True, 0, 0, 0),
        ]

    on(scenario)


def test_a_wait_ends_as_soon_as_the_job_is_finished(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await lead_to(pipe, JobStatus.DONE)
        assert (await pipe.wait("done")).status is JobStatus.DONE
        await pipe.enqueue("echo", id="a")
        waiting = asyncio.create_task(pipe.wait("a", LIMIT))
        (claim,) = take(pipe.store, types=["echo"])
        assert not waiting.done()
        finish(pipe.store, claim, result=42)
        job = await waiting
        assert (job.status, job.result) == (JobStatus.DONE, 42)

    on(scenario)


def test_a_wait_gives_the_job_as_it_is_when_the_time_is_over(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", id="a")
        for timeout in (0, 0.01):
            assert (await pipe.wait("a", timeout)).status is JobStatus.QUEUED

    on(scenario)


def test_a_wait_looks_for_itself_when_the_feed_says_nothing(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent(MemoryStore):
        def events(self, after: int, limit: int) -> list[JobEvent]:
            return []

    async def scenario() -> None:
        monkeypatch.setattr("jobpipe.gateway.jobs._LOOK_AGAIN", 0.01)
        async with Jobpipe(Silent()) as pipe:
            await pipe.enqueue("echo", id="a")
            waiting = asyncio.create_task(pipe.wait("a", LIMIT))
            (claim,) = take(pipe.store, types=["echo"])
            finish(pipe.store, claim)
            assert (await waiting).status is JobStatus.DONE

    run(scenario())


def test_many_may_wait_for_the_same_job(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", id="a")
        waiting = [asyncio.create_task(pipe.wait("a", LIMIT)) for _ in range(20)]
        impatient = asyncio.create_task(pipe.wait("a", LIMIT))
        await asyncio.sleep(0)
        impatient.cancel()
        await pipe.cancel("a")
        assert {job.status for job in await asyncio.gather(*waiting)} == {JobStatus.CANCELLED}

    on(scenario)


# Why it is not running


def test_every_reason_is_given(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)

        async def reason(id: str) -> Reason:
            return (await pipe.explain(id)).reason

        assert await reason("scheduled") is Reason.SCHEDULED
        assert (await pipe.explain("scheduled")).until == (await pipe.get("scheduled")).run_at
        assert await reason("running") is Reason.RUNNING
        assert {await reason(id) for id in ("done", "failed", "cancelled", "expired")} == {Reason.FINISHED}
        assert await reason("queued") is Reason.NO_WORKER
        await pipe.pause("default")
        assert await reason("queued") is Reason.PAUSED
        await pipe.resume("default")
        worker = WorkerInfo(name="w", types=("echo",), slots=2, running=("running",), started_at=0)
        pipe.store.beat(worker, 60)
        found = await pipe.explain("queued")
        assert (found.reason, found.blockers) == (Reason.POSITION, ("running",))
        assert [(each.name, each.slots) for each in await pipe.workers()] == [("w", 2)]

    on(scenario)
