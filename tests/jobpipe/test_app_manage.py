"""Managing jobs from Python, on memory and on SQLite: cancelling, retrying, pausing."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

import pytest

from jobpipe import (
    BadInputError,
    JobNotFoundError,
    Jobpipe,
    JobRequest,
    JobStatus,
    PayloadTooLargeError,
    WrongStatusError,
)
from jobpipe.testing.tools import finish, take

from ..support.jobs import lead_to, one_of_each
from .conftest import On


class Mail(TypedDict):
    to: str
    count: int


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
        for status in ("done", "failed", "expired"):
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
        assert await pipe.cancel_many(all=True) == 3, "the waiting, the queued and the running one"
        stats = await pipe.stats()
        assert (stats.waiting, stats.queued, stats.running, stats.cancelled) == (0, 0, 1, 5)

    on(scenario)


def test_all_that_match_are_retried(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        assert await pipe.retry_many(status="done") == 0
        assert await pipe.retry_many(status="failed", queue="other") == 0
        assert await pipe.retry_many(status="failed") == 1
        assert await pipe.retry_many(all=True) == 1
        assert (await pipe.stats()).queued == 3

    on(scenario)


def test_all_finished_jobs_that_match_are_deleted(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        await one_of_each(pipe)
        assert await pipe.delete_many(status="running") == 0
        assert await pipe.delete_many(error="Nothing") == 0
        failed = (await pipe.get("failed")).error
        assert failed is not None
        assert await pipe.delete_many(error=failed.type) == 1
        assert await pipe.delete_many(all=True) == 3, "the done, cancelled and expired ones"
        left = {job.status for job in (await pipe.page()).jobs}
        assert left == {"scheduled", "waiting", "queued", "running"}

    on(scenario)


def test_a_retry_takes_a_payload_that_fits_the_type(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        @pipe.job("mail", key=lambda mail: mail["to"], rate="5/s")
        async def send(mail: Mail) -> None: ...

        await pipe.enqueue("mail", Mail(to="a@b", count=1), id="a")
        await pipe.enqueue("echo", 1, id="unknown")
        await pipe.cancel_many(all=True)
        for wrong, field in (({"to": "a@b", "count": "x"}, "payload.count"), ({"to": "a"}, "payload")):
            with pytest.raises(BadInputError, match=rf"^{field}"):
                await pipe.retry("a", payload=wrong)
        with pytest.raises(PayloadTooLargeError):
            await pipe.retry("a", payload=Mail(to="x" * 2_000, count=1))
        assert (await pipe.get("a")).status is JobStatus.CANCELLED
        job = await pipe.retry("a", payload={"to": "c@d", "count": 2})
        assert (job.status, job.payload) == (JobStatus.QUEUED, {"to": "c@d", "count": 2})
        assert pipe.store.key_of("a") == "c@d"
        assert (await pipe.retry("unknown", payload=None)).payload is None
        with pytest.raises(WrongStatusError):
            await pipe.retry("a", payload=Mail(to="e@f", count=3))
        assert (await pipe.get("a")).payload == {"to": "c@d", "count": 2}
        with pytest.raises(JobNotFoundError):
            await pipe.retry("nobody", payload=1)

    on(scenario, max_payload=1_000)


def test_more_than_a_page_is_cancelled_and_retried(on: On, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobpipe.gateway.jobs.MOST_AT_ONCE", 7)

    async def scenario(pipe: Jobpipe) -> None:
        await pipe.enqueue_many(JobRequest() for _ in range(50))
        assert await pipe.cancel_many(all=True) == 50
        assert await pipe.retry_many(all=True) == 50
        assert (await pipe.stats()).queued == 50

    on(scenario, queue_size=0)


def test_a_wrong_filter_is_refused(on: On) -> None:
    async def scenario(pipe: Jobpipe) -> None:
        for call in (pipe.cancel_many, pipe.retry_many, pipe.delete_many):
            with pytest.raises(BadInputError, match=r"^status"):
                await call(status="pending")
            with pytest.raises(BadInputError, match=r"^queue"):
                await call(queue="a b")
            with pytest.raises(BadInputError, match=r"^error must be a string of 1 to 200"):
                await call(error="")
            with pytest.raises(BadInputError, match=r"^error contains a lone surrogate"):
                await call(error="\ud800")
            for wrong in ({}, {"all": False}, {"all": True, "type": "echo"}, {"type": None}, {"all": 1}):
                with pytest.raises(BadInputError, match=r"^all must be true"):
                    await call(**wrong)

    on(scenario)


def test_a_wrong_filter_is_refused_before_the_store_is_opened(tmp_path: Path) -> None:
    pipe = Jobpipe(f"sqlite:///{tmp_path}/jobs.db")
    for call in (pipe.cancel_many_sync, pipe.retry_many_sync, pipe.delete_many_sync):
        with pytest.raises(BadInputError, match=r"^all must be true"):
            call()
    assert not list(tmp_path.iterdir())


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
