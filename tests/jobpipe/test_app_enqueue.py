"""Enqueueing from Python, on memory and on SQLite: what is kept, what is refused, what is the same job."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    JobConflictError,
    Jobpipe,
    JobRequest,
    JobStatus,
    OnDuplicate,
    PayloadTooLargeError,
    QueueFullError,
)

from ..support.jobs import lead_to
from ..support.waiting import run
from .conftest import On

# Enqueueing


def test_a_job_has_the_defaults_of_the_contract(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        receipt = await pipe.enqueue("echo")
        assert (receipt.status, receipt.is_new) == (JobStatus.QUEUED, True)
        job = await pipe.get(receipt.id)
        assert (job.type, job.queue, job.payload, job.max_retries, job.priority) == (
            "echo",
            "default",
            None,
            10,
            0,
        )
        assert (job.attempts, job.deadline, job.error, job.progress, job.result) == (
            0,
            None,
            None,
            None,
            None,
        )
        assert (job.started_at, job.finished_at, job.history) == (None, None, ())
        assert job.created_at.tzinfo is not None
        assert abs(datetime.now(UTC) - job.created_at) < timedelta(minutes=1)

    on(scenario)


def test_everything_the_caller_says_is_kept(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue(
            "echo",
            {"a": [1, None]},
            id="order-17",
            queue="mails",
            max_retries=0,
            priority=-1000,
            deadline=2.5,
            expires_in=timedelta(minutes=1),
            unique="report",
            on_duplicate="replace",
            max_wait=timedelta(seconds=30),
            tags=("b", "a", "b"),
        )
        job = await pipe.get("order-17")
        assert (job.unique, job.on_duplicate, job.max_wait) == ("report", OnDuplicate.REPLACE, 30)
        assert job.tags == ("b", "a")
        assert job.expires_at is not None
        assert (job.expires_at - job.created_at).total_seconds() == pytest.approx(60, abs=0.01)
        assert (job.payload, job.queue, job.max_retries) == ({"a": [1, None]}, "mails", 0)
        assert (job.priority, job.deadline) == (-1000, 2.5)

    on(scenario)


def test_a_delay_counts_from_now(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        receipt = await pipe.enqueue("echo", delay=90)
        job = await pipe.get(receipt.id)
        assert receipt.status is job.status is JobStatus.SCHEDULED
        assert (job.run_at - job.created_at).total_seconds() == pytest.approx(90, abs=0.001)
        assert (await pipe.enqueue("echo", delay=0)).status is JobStatus.QUEUED

    on(scenario)


def test_a_time_in_the_future_schedules_and_one_in_the_past_queues(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        later = datetime(2100, 1, 2, 3, 4, 5, tzinfo=UTC)
        receipt = await pipe.enqueue("echo", run_at=later)
        assert receipt.status is JobStatus.SCHEDULED
        assert (await pipe.get(receipt.id)).run_at == later
        assert (await pipe.enqueue("echo", run_at=later - timedelta(days=50_000))).status is JobStatus.QUEUED
        with pytest.raises(BadInputError, match=r"^run_at"):
            await pipe.enqueue("echo", run_at=datetime(2100, 1, 2))

    on(scenario)


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("type", {"type": "a b"}),
    ("type", {"type": "a\n"}),
    ("type", {"type": 5}),
    ("id", {"id": "-a"}),
    ("id", {"id": "a\n"}),
    ("queue", {"queue": "a\n"}),
    ("max_retries", {"max_retries": 101}),
    ("priority", {"priority": 1001}),
    ("delay", {"delay": -1}),
    ("deadline", {"deadline": 0}),
    ("expires_in", {"expires_in": timedelta(seconds=-1)}),
    ("unique", {"unique": "a\n"}),
    ("on_duplicate", {"on_duplicate": "replace"}),
    ("max_wait", {"max_wait": 5}),
    ("tags[0]", {"tags": ["\x00"]}),
    ("payload", {"payload": "\x00"}),
    ("payload", {"payload": {"\ud800": 1}}),
    ("payload", {"payload": object()}),
    ("payload", {"payload": float("nan")}),
    ("payload", {"type": "sleep", "payload": "long"}),
    ("colour", {"colour": "red"}),
]


@pytest.mark.parametrize(("field", "given"), WRONG, ids=lambda each: ascii(each)[:40].partition(" at 0x")[0])
def test_a_wrong_value_is_refused_by_field_and_nothing_is_put_in(
    on: On, field: str, given: dict[str, Any]
) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        arguments = {"type": "echo"} | given
        with pytest.raises(BadInputError) as caught:
            await pipe.enqueue(**arguments)
        assert caught.value.field == field
        with pytest.raises(BadInputError):
            pipe.enqueue_sync(**arguments)
        assert (await pipe.page()).jobs == []

    on(scenario)


def test_a_payload_over_the_limit_is_refused(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", "x" * 98)
        with pytest.raises(PayloadTooLargeError, match="101 bytes as JSON, the limit is 100"):
            await pipe.enqueue("echo", "x" * 99)

    on(scenario, max_payload=100)


def test_a_full_queue_takes_no_more_but_another_does(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue_many([JobRequest(id="a"), JobRequest(id="b")])
        with pytest.raises(QueueFullError) as caught:
            await pipe.enqueue("echo", id="c")
        await pipe.enqueue("echo", delay=3600)
        assert (caught.value.queue, caught.value.waiting, caught.value.needed, caught.value.capacity) == (
            *("default", 2, 1, 2),
        )
        with pytest.raises(QueueFullError):
            pipe.enqueue_sync("echo")
        assert not (await pipe.enqueue("echo", id="a")).is_new, "known already: it needs no place"
        await pipe.enqueue("echo", queue="other")

    on(scenario, queue_size=2)


def test_without_a_limit_any_number_waits(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue_many(JobRequest() for _ in range(500))
        assert (await pipe.stats()).queued == 500

    on(scenario, queue_size=0)


# The same again


def test_the_same_id_and_content_is_the_same_job(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        first = await pipe.enqueue("echo", {"a": 1, "b": 2}, id="x", delay=60)
        again = await pipe.enqueue("echo", {"b": 2, "a": 1}, id="x", delay=60, max_retries=10, priority=0)
        assert (first.is_new, again.is_new) == (True, False)
        plain = await pipe.enqueue("echo", {"b": 2, "a": 1}, id="x", delay=60, tags=[])
        assert not plain.is_new, "no tags are none, as before there were any"
        assert (again.id, again.status) == ("x", JobStatus.SCHEDULED)
        assert len((await pipe.page()).jobs) == 1

    on(scenario)


def test_a_job_of_a_former_default_is_still_the_same_job(on: On) -> None:
    """An older program has stored it, when three retries were the default."""

    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", {"a": 1}, id="x", max_retries=3)
        again = await pipe.enqueue("echo", {"a": 1}, id="x")
        assert not again.is_new
        assert (await pipe.get("x")).max_retries == 3, "it keeps its own"
        with pytest.raises(JobConflictError):
            await pipe.enqueue("echo", {"a": 1}, id="x", max_retries=10)
        await pipe.enqueue("echo", id="y", max_retries=4)
        with pytest.raises(JobConflictError):
            await pipe.enqueue("echo", id="y")

    on(scenario)


def test_a_finished_job_is_still_the_same_job(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await lead_to(pipe, JobStatus.DONE, "x")
        again = await pipe.enqueue("echo", "x", id="x")
        assert (again.status, again.is_new) == (JobStatus.DONE, False)

    on(scenario)


OTHER: list[dict[str, Any]] = [
    {"payload": 2},
    {"payload": "1"},
    {"type": "other"},
    {"queue": "other"},
    {"max_retries": 4},
    {"priority": 1},
    {"delay": 60},
    {"run_at": datetime(2100, 1, 1, tzinfo=UTC)},
    {"deadline": 5},
    {"expires_in": 5},
    {"unique": "a"},
    {"tags": ["a"]},
]


@pytest.mark.parametrize("change", OTHER, ids=ascii)
def test_the_same_id_with_other_content_is_a_conflict(on: On, change: dict[str, Any]) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", 1, id="x")
        before = await pipe.get("x")
        arguments: dict[str, Any] = {"type": "echo", "payload": 1, "id": "x"} | change
        with pytest.raises(JobConflictError) as caught:
            await pipe.enqueue(**arguments)
        assert caught.value.id == "x"
        with pytest.raises(JobConflictError):
            pipe.enqueue_sync(**arguments)
        assert await pipe.get("x") == before

    on(scenario)


def test_tags_are_a_set_and_a_default_may_be_said(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", id="x", tags=["a", "b"], unique="n")
        again = await pipe.enqueue("echo", id="x", tags=["b", "a", "b"], unique="n", on_duplicate="keep")
        assert not again.is_new
        with pytest.raises(JobConflictError):
            await pipe.enqueue("echo", id="x", tags=["a", "b"], unique="n", on_duplicate="replace")

    on(scenario)


# Batches


def test_a_batch_is_put_in_whole_and_answered_in_order(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", id="b")
        receipts = await pipe.enqueue_many(JobRequest(id=id) for id in "abc")
        assert [(receipt.id, receipt.is_new) for receipt in receipts] == [
            ("a", True),
            ("b", False),
            ("c", True),
        ]
        assert await pipe.enqueue_many([]) == []
        assert pipe.enqueue_many_sync([]) == []
        assert [receipt.id for receipt in pipe.enqueue_many_sync([JobRequest(id="d")])] == ["d"]

    on(scenario)


async def refuse(pipe: Jobpipe, error: type[Exception], *requests: JobRequest) -> Exception:
    before = len((await pipe.page()).jobs)
    with pytest.raises(error) as caught:
        await pipe.enqueue_many(requests)
    with pytest.raises(error):
        pipe.enqueue_many_sync(requests)
    assert len((await pipe.page()).jobs) == before, "nothing of the batch was put in"
    return caught.value


def test_one_wrong_job_spoils_the_whole_batch(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", 1, id="taken")
        await refuse(pipe, JobConflictError, JobRequest(), JobRequest(id="taken", payload=2))
        await refuse(pipe, JobConflictError, JobRequest(id="twice"), JobRequest(id="twice"))
        await refuse(pipe, QueueFullError, *(JobRequest() for _ in range(10)))
        error = await refuse(pipe, BadInputError, JobRequest(), JobRequest(payload="\x00"))
        assert str(error).startswith("jobs[1].payload contains")
        error = await refuse(pipe, BadInputError, JobRequest(type="sleep", payload=[]), JobRequest())
        assert str(error).startswith("jobs[0].payload ")
        error = await refuse(pipe, BadInputError, JobRequest(), JobRequest(), JobRequest(id="a b"))
        assert isinstance(error, BadInputError)
        assert error.field == "jobs[2].id"

    on(scenario, queue_size=5)


UNCHECKED: list[dict[str, Any]] = [
    *({"max_retries": 5_000}, {"priority": "high"}, {"queue": 5}, {"deadline": -1}, {"delay": "soon"}),
    *({"type": None}, {"run_at": datetime(2100, 1, 1)}, {"run_at": 17}),
    *(
        {"expires_at": 17},
        {"expires_in": -1},
        {"unique": 5},
        {"on_duplicate": "keep"},
        {"max_wait": 1},
        {"tags": 5},
    ),
]


@pytest.mark.parametrize("given", UNCHECKED, ids=ascii)
def test_a_request_that_was_made_by_hand_is_checked_too(on: On, given: dict[str, Any]) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        error = await refuse(pipe, BadInputError, JobRequest(), JobRequest(**given))
        assert isinstance(error, BadInputError)
        assert error.field == f"jobs[1].{next(iter(given))}"

    on(scenario)


# From threads without a loop


def test_threads_without_an_event_loop_put_jobs_in(url: str) -> None:
    pipe = Jobpipe(url, queue_size=0)
    with closing(pipe), ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda number: pipe.enqueue_sync("echo", number), range(100)))
        assert len({receipt.id for receipt in receipts}) == 100
        assert sum(tally.count for tally in pipe.store.counts().tallies) == 100


def test_several_event_loops_use_one_pipe(url: str) -> None:
    pipe = Jobpipe(url, queue_size=0)

    async def scenario() -> None:
        await asyncio.gather(*(pipe.enqueue("echo") for _ in range(10)))

    with closing(pipe):
        threads = [threading.Thread(target=lambda: run(scenario())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(tally.count for tally in pipe.store.counts().tallies) == 40


def test_a_closed_pipe_opens_again_when_it_is_used(sqlite_url: str) -> None:
    pipe = Jobpipe(sqlite_url)
    with closing(pipe):
        pipe.enqueue_sync("echo", id="a")
        pipe.close()
        pipe.close()
        assert not pipe.enqueue_sync("echo", id="a").is_new
