"""Everything that one can do with jobs from Python, on memory and on SQLite; nothing is run here."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jobpipe import (
    BadInputError,
    JobConflictError,
    JobNotFoundError,
    Jobpipe,
    JobRequest,
    JobStatus,
    PayloadTooLargeError,
    QueueFullError,
    Reason,
    SettingsError,
    StoreRefusedError,
    WrongStatusError,
)
from jobpipe.model.job import Move
from jobpipe.stores.base import JobEvent, Receipt, WorkerInfo
from jobpipe.stores.memory import MemoryStore
from jobpipe.testing.tools import BOOM, finish, put, take

from .conftest import LIMIT, run

Scenario = Callable[[Jobpipe], Awaitable[None]]
On = Callable[..., None]


@pytest.fixture
def on(url: str) -> On:
    """Run a scenario with a pipe on each store."""

    def on(scenario: Scenario, **settings: Any) -> None:
        async def main() -> None:
            async with Jobpipe(url, builtins=True, **settings) as pipe:
                await scenario(pipe)

        run(main())

    return on


async def lead_to(pipe: Jobpipe, status: JobStatus, id: str | None = None, **options: Any) -> str:
    """Put a job in and lead it to that status, as a worker would."""
    id = id or status.value
    delay = 3600 if status is JobStatus.SCHEDULED else None
    await pipe.enqueue("echo", id, id=id, delay=delay, **options)
    if status is JobStatus.CANCELLED:
        await pipe.cancel(id)
    elif status not in (JobStatus.SCHEDULED, JobStatus.QUEUED):
        (claim,) = take(pipe.store, types=["echo"])
        assert claim.id == id
        if status is JobStatus.DONE:
            finish(pipe.store, claim, result="fine")
        elif status is JobStatus.FAILED:
            finish(pipe.store, claim, Move.FAIL, error=BOOM)
    assert (await pipe.get(id)).status is status
    return id


async def one_of_each(pipe: Jobpipe) -> None:
    for status in reversed(JobStatus):  # Why reversed: a queued one must not be in the way of a claim
        await lead_to(pipe, status)


# Putting in


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
        )
        job = await pipe.get("order-17")
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


# In the caller's own transaction


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("isolation_level", ["DEFERRED", "IMMEDIATE", None])
def test_a_job_is_there_if_and_when_the_callers_transaction_commits(
    sqlite_url: str, away_from_home: Path, is_async: bool, isolation_level: Any
) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as pipe:
            with closing(sqlite3.connect(away_from_home / "jobs.db", isolation_level=isolation_level)) as own:
                own.execute("CREATE TABLE orders (number INTEGER)")
                own.commit()

                async def order(number: int) -> None:
                    if isolation_level is None:
                        own.execute("BEGIN")
                    own.execute("INSERT INTO orders VALUES (?)", (number,))
                    id = f"order-{number}"
                    if is_async:
                        await pipe.enqueue("echo", id=id, connection=own)
                    else:
                        pipe.enqueue_sync("echo", id=id, connection=own)
                    with pytest.raises(JobNotFoundError):
                        await pipe.get(id)

                await order(1)
                own.rollback()
                with pytest.raises(JobNotFoundError):
                    await pipe.get("order-1")
                await order(2)
                own.commit()
                assert (await pipe.get("order-2")).status is JobStatus.QUEUED
                assert own.execute("SELECT number FROM orders").fetchall() == [(2,)]
                assert (await pipe.stats()).queued == 1

    run(scenario())


def test_a_refused_job_leaves_the_callers_transaction_as_it_was(
    sqlite_url: str, away_from_home: Path
) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url, queue_size=1) as pipe:
            await pipe.enqueue("echo", 1, id="taken")
            with closing(sqlite3.connect(away_from_home / "jobs.db")) as own:
                own.execute("CREATE TABLE orders (number INTEGER)")
                own.execute("INSERT INTO orders VALUES (1)")
                with pytest.raises(JobConflictError):
                    await pipe.enqueue("echo", 2, id="taken", connection=own)
                with pytest.raises(QueueFullError):
                    await pipe.enqueue("echo", connection=own)
                assert own.in_transaction
                assert not (await pipe.enqueue("echo", 1, id="taken", connection=own)).is_new
                own.commit()
                assert own.execute("SELECT count(*) FROM orders").fetchone() == (1,)
            assert (await pipe.stats()).queued == 1

    run(scenario())


def test_a_foreign_connection_is_refused(sqlite_url: str, away_from_home: Path) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as pipe:
            for path in (":memory:", str(away_from_home / "other.db")):
                with closing(sqlite3.connect(path)) as foreign:
                    with pytest.raises(
                        BadInputError, match=r"^connection must be one to the store's own file"
                    ):
                        await pipe.enqueue("echo", connection=foreign)
                    assert not foreign.in_transaction
            for wrong in (object(), "connection", 5):
                with pytest.raises(BadInputError, match=r"^connection must be a sqlite3\.Connection"):
                    pipe.enqueue_sync("echo", connection=wrong)
            assert (await pipe.page()).jobs == []

    run(scenario())


def test_memory_has_no_transactions(away_from_home: Path) -> None:
    own = sqlite3.connect(":memory:")
    with (
        closing(own),
        closing(Jobpipe("memory://")) as pipe,
        pytest.raises(BadInputError, match=r"^connection"),
    ):
        pipe.enqueue_sync("echo", connection=own)


# Looking


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
    *[("status", value) for value in ("waiting", "", "DONE", 1)],
    *[("type", value) for value in ("", "a b")],
    *[("queue", value) for value in ("a\n", 5)],
]


@pytest.mark.parametrize(("field", "value"), WRONG_PAGES, ids=ascii)
def test_a_wrong_page_is_refused_by_field(on: On, field: str, value: Any) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        with pytest.raises(BadInputError) as caught:
            await pipe.page(**{field: value})
        assert caught.value.field == field

    on(scenario)


def test_the_statistics_count_every_status(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        await pipe.enqueue("echo", queue="other")
        stats = await pipe.stats()
        assert (stats.scheduled, stats.queued, stats.running) == (1, 2, 1)
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


# Cancelling and retrying


def test_a_waiting_job_is_cancelled_at_once(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for status in (JobStatus.SCHEDULED, JobStatus.QUEUED):
            job = await pipe.cancel(await lead_to(pipe, status))
            assert job.status is JobStatus.CANCELLED
            assert job.finished_at is not None
            assert job.attempts == 0

    on(scenario)


def test_a_running_job_is_told_and_ends_cancelled_whatever_comes_of_it(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        told: list[list[str]] = []
        leave = pipe.signals.on_cancel(lambda ids: told.append(list(ids)))
        await pipe.enqueue("echo", id="a")
        (claim,) = take(pipe.store, types=["echo"])
        assert (await pipe.cancel("a")).status is JobStatus.RUNNING
        leave()
        await pipe.cancel("a")
        assert told == [["a"]]
        finish(pipe.store, claim, result="too late")
        job = await pipe.get("a")
        assert (job.status, job.result) == (JobStatus.CANCELLED, None)

    on(scenario)


def test_a_cancelled_job_stays_so_and_a_done_or_failed_one_is_refused(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        before = await pipe.get("cancelled")
        assert await pipe.cancel("cancelled") == before
        for status in ("done", "failed"):
            with pytest.raises(WrongStatusError, match="cannot be cancelled") as caught:
                await pipe.cancel(status)
            assert (caught.value.id, caught.value.status) == (status, status)
            assert (await pipe.get(status)).status == status

    on(scenario)


def test_only_failed_and_cancelled_jobs_can_be_retried(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        for status in JobStatus:
            if status in (JobStatus.FAILED, JobStatus.CANCELLED):
                job = await pipe.retry(status)
                assert (job.status, job.attempts, job.error, job.finished_at) == (
                    JobStatus.QUEUED,
                    0,
                    None,
                    None,
                )
            else:
                with pytest.raises(WrongStatusError) as caught:
                    await pipe.retry(status)
                assert caught.value.status is status

    on(scenario)


def test_a_retried_job_keeps_its_history_and_goes_on_counting(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await lead_to(pipe, JobStatus.FAILED, "a")
        await pipe.retry("a")
        (claim,) = take(pipe.store, types=["echo"])
        finish(pipe.store, claim)
        job = await pipe.get("a")
        assert job.attempts == 1
        assert [attempt.number for attempt in job.history] == [1, 2]
        assert [attempt.error is None for attempt in job.history] == [False, True]

    on(scenario)


def test_all_that_match_are_cancelled(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        await pipe.enqueue("echo", id="elsewhere", queue="other")
        assert await pipe.cancel_many(queue="other") == 1
        assert await pipe.cancel_many(status="done") == 0
        assert await pipe.cancel_many(type="sleep") == 0
        assert await pipe.cancel_many(status="scheduled") == 1
        assert await pipe.cancel_many() == 2, "the queued and the running one"
        stats = await pipe.stats()
        assert (stats.scheduled, stats.queued, stats.running, stats.cancelled) == (0, 0, 1, 4)

    on(scenario)


def test_all_that_match_are_retried(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        assert await pipe.retry_many(status="done") == 0
        assert await pipe.retry_many(status="failed", queue="other") == 0
        assert await pipe.retry_many(status="failed") == 1
        assert await pipe.retry_many() == 1
        assert (await pipe.stats()).queued == 3

    on(scenario)


def test_more_than_a_page_is_cancelled_and_retried(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobpipe.gateway.jobs.MOST_AT_ONCE", 7)

    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue_many(JobRequest() for _ in range(50))
        assert await pipe.cancel_many() == 50
        assert await pipe.retry_many() == 50
        assert (await pipe.stats()).queued == 50

    on(scenario, queue_size=0)


def test_a_wrong_filter_is_refused(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for call in (pipe.cancel_many, pipe.retry_many):
            with pytest.raises(BadInputError, match=r"^status"):
                await call(status="waiting")
            with pytest.raises(BadInputError, match=r"^queue"):
                await call(queue="a b")

    on(scenario)


# Pausing


def test_a_paused_queue_lets_nothing_go_until_it_is_resumed(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue("echo", id="a", queue="one")
        await pipe.enqueue("echo", id="b", queue="two")
        assert (await pipe.pause("one")).paused
        assert [claim.id for claim in take(pipe.store, 5, types=["echo"])] == ["b"]
        assert (await pipe.enqueue("echo", queue="one")).is_new, "it still takes jobs"
        info = await pipe.resume("one")
        assert (info.name, info.paused, info.queued) == ("one", False, 2)
        assert len(take(pipe.store, 5, types=["echo"])) == 2

    on(scenario)


def test_a_queue_without_jobs_can_be_paused_and_resumed(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for _ in range(2):
            info = await pipe.pause("empty")
            assert (info.name, info.paused) == ("empty", True)
        for _ in range(2):
            info = await pipe.resume("empty")
            assert (info.name, info.paused) == ("empty", False)
        for call in (pipe.pause, pipe.resume):
            with pytest.raises(BadInputError, match=r"^queue"):
                await call("a b")

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
        assert {await reason(id) for id in ("done", "failed", "cancelled")} == {Reason.FINISHED}
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


# Settings


def test_the_constructor_sets_and_the_environment_wins(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Jobpipe().settings.store == "sqlite:///jobpipe.db"
    assert Jobpipe("memory://", workers=9).settings.workers == 9
    monkeypatch.setenv("JOBPIPE_STORE", "sqlite:///env.db")
    monkeypatch.setenv("WORKERS", "7")
    settings = Jobpipe("memory://", workers=9, queue_size=5).settings
    assert (settings.store, settings.workers, settings.queue_size) == ("sqlite:///env.db", 7, 5)


@pytest.mark.parametrize("connected", [False, True])
def test_the_bound_of_the_environment_is_not_for_programs(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch, connected: bool
) -> None:
    monkeypatch.setenv("QUEUE_SIZE", "1")
    url = "sqlite:///jobs.db"

    def put(pipe: Jobpipe) -> list[Receipt]:
        with closing(pipe), closing(sqlite3.connect("jobs.db")) as connection:
            _ = pipe.store
            batches = [[JobRequest(queue=queue)] * 3 for queue in ("a", "b")]
            given = {"connection": connection} if connected else {}
            return [receipt for batch in batches for receipt in pipe.enqueue_many_sync(batch, **given)]

    assert len(put(Jobpipe(url))) == 6
    flagged = Jobpipe(url, queue_size=0)
    flagged.configure(queue_size="2")
    for bounded in (Jobpipe(url, queue_size=2), flagged):
        with pytest.raises(QueueFullError, match=r"of 2 jobs"):
            put(bounded)


def test_an_env_file_wins_over_the_constructor_and_a_flag_over_everything(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (away_from_home / ".env").write_text("WORKERS=3\nQUEUE_SIZE=30\nJOBPIPE_LEASE=3\n")
    monkeypatch.setenv("QUEUE_SIZE", "20")
    monkeypatch.setenv("JOBPIPE_LEASE", "2")
    pipe = Jobpipe("memory://", workers=9, queue_size=9, lease=9, grace=9)
    pipe.configure(lease=1, workers=None)
    settings = pipe.settings
    assert (settings.workers, settings.queue_size, settings.lease, settings.grace) == (3, 20, 1, 9)


def test_a_wrong_setting_is_named(away_from_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match=r"^colour is not a known setting"):
        _ = Jobpipe("memory://", colour="red").settings
    with pytest.raises(SettingsError, match=r"^workers must be"):
        _ = Jobpipe("memory://", workers=-1).settings
    with pytest.raises(SettingsError, match=r"^JOBPIPE_STORE"):
        _ = Jobpipe("nosuch://").store
    monkeypatch.setenv("QUEUE_SIZE", "many")
    with pytest.raises(SettingsError, match=r"^QUEUE_SIZE must be"):
        Jobpipe("memory://").enqueue_sync("echo")


def test_a_pipe_in_use_cannot_be_configured(away_from_home: Path) -> None:
    pipe = Jobpipe("memory://")
    pipe.enqueue_sync("echo")
    with pytest.raises(RuntimeError, match="already in use"):
        pipe.configure(workers=1)


def test_a_store_of_ones_own_is_used_and_never_closed(away_from_home: Path) -> None:
    class Own(MemoryStore):
        def close(self) -> None:
            raise AssertionError("it belongs to somebody else")

    store = Own()
    with closing(Jobpipe(store)) as pipe:
        pipe.enqueue_sync("echo", id="a")
    assert store.get("a") is not None


def test_a_store_that_is_refused_is_closed_unless_it_was_given(
    away_from_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused(MemoryStore):
        is_closed = False

        def migrate(self) -> list[str]:
            raise StoreRefusedError("it is too new")

        def close(self) -> None:
            self.is_closed = True

    opened, given = Refused(), Refused()
    monkeypatch.setattr("jobpipe.gateway.lazy_store.open_store", lambda _: opened)
    for pipe in (Jobpipe("memory://"), Jobpipe(given)):
        with pytest.raises(StoreRefusedError):
            _ = pipe.store
    assert (opened.is_closed, given.is_closed) == (True, False)


def test_the_default_store_is_a_file_in_the_working_folder(away_from_home: Path) -> None:
    with closing(Jobpipe()) as pipe:
        pipe.enqueue_sync("echo")
    assert (away_from_home / "jobpipe.db").is_file()


def test_defining_a_pipe_opens_nothing(away_from_home: Path) -> None:
    pipe = Jobpipe()

    @pipe.job
    def work() -> None: ...

    assert list(away_from_home.iterdir()) == []
    pipe.close()


def test_the_jobs_of_another_pipe_on_the_same_file_are_seen(sqlite_url: str) -> None:
    with closing(Jobpipe(sqlite_url)) as one, closing(Jobpipe(sqlite_url)) as other:
        one.enqueue_sync("echo", id="a")
        assert not other.enqueue_sync("echo", id="a").is_new
        put(other.store)


def test_the_environment_wins_over_a_store_object_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = MemoryStore()
    with closing(Jobpipe(given)) as pipe:
        assert pipe.store is given
    monkeypatch.setenv("JOBPIPE_STORE", f"sqlite:///{tmp_path}/jobs.db")
    with closing(Jobpipe(given)) as pipe:
        assert pipe.store.url.startswith("sqlite:")


@pytest.mark.parametrize("verb", ["get", "wait", "explain", "cancel", "retry"])
def test_id_that_is_no_text_is_refused(on: On, verb: str) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        with pytest.raises(BadInputError, match="id must be a string, got 5"):
            await getattr(pipe, verb)(5)

    on(scenario)


def test_values_that_no_pipe_takes_are_named(on: On) -> None:
    with pytest.raises(BadInputError, match=r"store must be a URL .* got 5"):
        Jobpipe(5)  # type: ignore[arg-type]

    async def scenario(pipe: Jobpipe) -> None:
        with pytest.raises(BadInputError, match="timeout must be a number of seconds, got '1'"):
            await pipe.wait("a", "1")  # type: ignore[arg-type]
        with pytest.raises(BadInputError, match="request must be a ScheduleRequest"):
            await pipe.schedules.put("s", {"type": "echo"})  # type: ignore[arg-type]
        for verb in (pipe.schedules.pause, pipe.schedules.drop):
            with pytest.raises(BadInputError, match="name must be a string, got 5"):
                await verb(5)  # type: ignore[arg-type]

    on(scenario)


def test_many_jobs_of_one_transaction_are_there_if_it_commits(sqlite_url: str) -> None:
    pipe = Jobpipe(sqlite_url)
    requests = [JobRequest(type="echo", payload=n, id=f"j{n}") for n in range(3)]
    path = sqlite_url.removeprefix("sqlite:///")
    with closing(pipe), closing(sqlite3.connect(path)) as connection:
        assert pipe.store.get("j0") is None
        pipe.enqueue_many_sync(requests, connection=connection)
        connection.rollback()
        assert pipe.store.get("j0") is None
        pipe.enqueue_many_sync(requests, connection=connection)
        connection.commit()
        assert all(pipe.store.get(id) for id in ("j0", "j1", "j2"))
