"""Leases: kept while a job runs, whatever it does, and lost only by those who are silent."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jobpipe import Job, Jobpipe, JobStatus, Progress, Stats, current_job
from jobpipe.errors import StoreAwayError
from jobpipe.stores.base import ClaimResult, Lease, LeaseState, Rescued, Schedules, WorkerInfo
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing.tools import finish, take

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached, seen
from ...support.waiting import LIMIT, run

LEASE = 0.3


def lost_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "the lease of job" in record.getMessage()]


def rescued_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage() for record in caplog.records if "was lost by its worker" in record.getMessage()
    ]


# Keeping


def test_a_handler_that_blocks_the_event_loop_for_three_leases_keeps_its_lease(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = Jobpipe(url, lease=LEASE)

    @pipe.job
    async def block() -> str:
        time.sleep(3 * LEASE)  # the very thing that one must not do
        return "done"

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await block.enqueue()
            return await finished(pipe, receipt.id)

    job = run(scenario())
    assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, "done")
    assert not rescued_lines(caplog)
    assert not lost_lines(caplog)


def test_jobs_that_run_for_many_leases_are_rescued_by_nobody(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process, which looks for lost jobs all the time, finds none."""
    pipe, other = Jobpipe(sqlite_url, lease=LEASE), Jobpipe(sqlite_url, lease=LEASE)

    @pipe.job
    def long() -> int:
        threading.Event().wait(4 * LEASE)
        return current_job().attempts

    async def scenario() -> None:
        async with pipe, other, pipe.running(), other.running():
            receipts = [await long.enqueue() for _ in range(3)]
            assert [(await finished(pipe, receipt.id)).result for receipt in receipts] == [1, 1, 1]

    run(scenario())
    assert not rescued_lines(caplog)


class Unhurried(SqliteStore):
    """From some moment on a claim brings something only when the event loop of the process is blocked."""

    has_time = False
    is_claiming: ClassVar[threading.Event]
    is_blocked: ClassVar[threading.Event]

    def claim(self, *args: Any, **kwargs: Any) -> ClaimResult:
        if self.has_time:
            self.is_claiming.set()
            assert self.is_blocked.wait(LIMIT)
        return super().claim(*args, **kwargs)


def test_a_job_that_is_claimed_while_a_handler_blocks_the_event_loop_keeps_its_lease(
    away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The loop does not know of the claim yet, and its lease is extended."""
    Unhurried.is_claiming, Unhurried.is_blocked = threading.Event(), threading.Event()

    async def scenario() -> Job:
        store, is_there = Unhurried(away_from_home / "jobs.db"), asyncio.Event()
        pipe = Jobpipe(store, lease=LEASE)

        @pipe.job
        async def block() -> None:
            store.has_time = True
            await pipe.enqueue("echo", id="claimed")
            is_there.set()
            assert await asyncio.to_thread(Unhurried.is_claiming.wait, LIMIT)
            Unhurried.is_blocked.set()
            time.sleep(3 * LEASE)  # the very thing that one must not do

        with closing(store):
            async with pipe, pipe.running(workers=2):
                await block.enqueue()
                await is_there.wait()
                return await finished(pipe, "claimed")

    job = run(scenario())
    assert (job.status, job.attempts) == (JobStatus.DONE, 1)
    assert not rescued_lines(caplog)


class Moody(MemoryStore):
    """It cannot look at schedules for a while, and does all else."""

    is_full = True

    def schedules(self) -> Schedules:
        if self.is_full:
            raise StoreAwayError("it is full")
        return super().schedules()


def test_what_the_heartbeat_cannot_do_is_one_line_and_that_it_can_again_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Though all else that it does goes well meanwhile."""
    caplog.set_level(logging.INFO, "jobpipe")
    store = Moody()
    maintenance = Jobpipe(store).make_service(workers=0).maintenance(store)
    now = 0.0
    for _ in range(20):
        now = maintenance.do(now)
    assert caplog.messages == ["the heartbeat waits for the store (looking at schedules): it is full"]
    store.is_full = False
    for _ in range(20):
        now = maintenance.do(now)
    assert caplog.messages[1:] == ["the heartbeat goes on: the store answers again"]


# Losing


class Cut(Unhurried):
    """The heartbeat cannot reach it to extend them."""

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        raise StoreAwayError("cut off")


def test_a_job_whose_lease_has_run_out_before_it_could_begin_does_not_begin(
    away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a freeze: the handler might run in vain. Given back, or rescued, it runs once."""
    Cut.is_claiming, Cut.is_blocked = threading.Event(), threading.Event()
    runs: list[int] = []

    async def scenario() -> Job:
        store, is_there = Cut(away_from_home / "jobs.db"), asyncio.Event()
        pipe = Jobpipe(store, lease=LEASE)

        @pipe.job
        async def count() -> None:
            runs.append(current_job().attempts)

        @pipe.job(max_retries=0)
        async def block() -> None:
            store.has_time = True
            await pipe.enqueue("count", id="claimed")
            is_there.set()
            assert await asyncio.to_thread(Cut.is_claiming.wait, LIMIT)
            Cut.is_blocked.set()
            time.sleep(3 * LEASE)

        with closing(store):
            async with pipe, pipe.running(workers=2):
                await block.enqueue()
                await is_there.wait()
                return await finished(pipe, "claimed")

    job = run(scenario())
    assert job.status is JobStatus.DONE
    assert runs == [job.attempts]
    assert "job claimed is given back: its lease may have run out" in caplog.text


class Late(SqliteStore):
    """The answer to the first claim that brings a job comes when the lease is over."""

    was_late = False

    def claim(self, *args: Any, **kwargs: Any) -> ClaimResult:
        result = super().claim(*args, **kwargs)
        if result.claims and not self.was_late:
            self.was_late = True
            time.sleep(1.5 * LEASE)
        return result


def test_a_job_whose_claim_was_answered_after_its_lease_does_not_begin(
    away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    runs: list[int] = []

    async def scenario() -> Job:
        store = Late(away_from_home / "jobs.db")
        pipe = Jobpipe(store, lease=LEASE)

        @pipe.job
        async def count() -> None:
            runs.append(current_job().attempts)

        with closing(store):
            async with pipe, pipe.running():
                return await finished(pipe, (await count.enqueue(id="late")).id)

    job = run(scenario())
    assert runs == [job.attempts]
    # The worker finds it out by itself, or the heartbeat was told before: on a busy machine it may be the first to ask.
    words = "job late is given back: its lease may have run out", "the lease of job 'late' was lost"
    assert any(each in caplog.text for each in words)


class Mute(SqliteStore):
    """Its leases run out: it never extends one, and says it did."""

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        return [LeaseState.HELD] * len(leases)

    def rescue(self, limit: int = 100) -> list[Rescued]:
        return []


def test_a_late_outcome_is_refused_and_the_others_result_stays(
    sqlite_url: str, away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        store = Mute(away_from_home / "jobs.db")
        late, quick = Jobpipe(store, lease=LEASE), Jobpipe(sqlite_url, lease=LEASE)

        @late.job("work")
        async def work() -> str:
            await gate.pass_through()
            return "late"

        @quick.job("work")
        async def work_quickly() -> str:
            return "quick"

        with closing(store):
            async with late, quick, late.running(workers=1):
                await late.enqueue("work", id="x")
                await gate.began.wait()
                async with quick.running():
                    job = await finished(quick, "x")
                assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 2, "quick")
                gate.go.set()
            assert await quick_look(sqlite_url, "x") == job

    run(scenario())
    assert lost_lines(caplog) == ["the lease of job 'x' was lost: the outcome of this run was not recorded"]
    assert len(rescued_lines(caplog)) == 1


async def quick_look(url: str, id: str) -> Job:
    async with Jobpipe(url) as pipe:
        return await pipe.get(id)


class Stalled(SqliteStore):
    """Its heartbeat hangs until it is let go, as that of a stopped process."""

    is_stalled: ClassVar[threading.Event]
    go_on: ClassVar[threading.Event]

    def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
        self.is_stalled.set()
        self.go_on.wait(LIMIT)
        return super().extend(leases, seconds)

    def rescue(self, limit: int = 100) -> list[Rescued]:
        return []


def test_a_worker_that_learns_that_its_lease_is_lost_breaks_the_run_off(
    sqlite_url: str, away_from_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        Stalled.is_stalled, Stalled.go_on = threading.Event(), threading.Event()
        gate = AsyncGate()
        broken_off = asyncio.Event()
        store = Stalled(away_from_home / "jobs.db")
        stalled, other = Jobpipe(store, lease=LEASE), Jobpipe(sqlite_url, lease=LEASE)

        @stalled.job("work", max_retries=1)
        async def work() -> None:
            try:
                await gate.pass_through()
            except asyncio.CancelledError:
                broken_off.set()
                raise

        @other.job("work")
        async def finish_it() -> str:
            return "other"

        with closing(store):
            async with stalled, other, stalled.running(workers=1):
                await stalled.enqueue("work", id="x")
                await gate.began.wait()
                async with other.running():
                    job = await finished(other, "x")
                assert job.result == "other"
                Stalled.go_on.set()
                await broken_off.wait()
            assert await quick_look(sqlite_url, "x") == job
        history = [attempt.error and attempt.error.type for attempt in job.history]
        assert history == ["WorkerLost", None]

    run(scenario())
    assert len(lost_lines(caplog)) == 1


# Rescuing


def test_a_job_of_a_dead_worker_is_rescued_and_run_again(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with Jobpipe(url, lease=LEASE) as pipe:
            await pipe.enqueue("echo", 5, id="x")
            (claim,) = take(pipe.store, worker="dead", types=["echo"], lease=0.001)
            async with pipe.running():
                job = await finished(pipe, "x")
            assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 2, 5)
            first, second = job.history
            assert first.worker == "dead"
            assert first.error is not None
            assert (first.error.type, first.error.message) == ("WorkerLost", "worker lost")
            assert second.error is None
            assert not finish(pipe.store, claim, result="from the grave")
            assert (await pipe.get("x")).result == 5

    run(scenario())
    assert rescued_lines(caplog) == ["job x was lost by its worker dead: it is queued now"]


def test_a_job_that_lost_all_its_workers_has_failed(url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(url, lease=LEASE) as pipe:
            await pipe.enqueue("echo", id="x", max_retries=0)
            take(pipe.store, worker="dead", types=["echo"], lease=0.001)
            async with pipe.running(workers=0):
                job = await finished(pipe, "x")
            assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
            assert job.error is not None
            assert (job.error.type, job.error.message) == ("WorkerLost", "worker lost")

    run(scenario())


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(url, lease=LEASE) as pipe:
            await pipe.enqueue("echo", id="x")
            take(pipe.store, worker="dead", types=["echo"], lease=0.001)
            await pipe.cancel("x")
            async with pipe.running():
                assert (await finished(pipe, "x")).status is JobStatus.CANCELLED

    run(scenario())


# Being known


def test_a_worker_is_known_from_the_start_and_forgotten_at_the_stop(url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(url) as pipe:
            assert await pipe.workers() == []
            async with pipe.running(workers=3):
                (worker,) = await pipe.workers()
                assert (worker.slots, worker.types) == (3, ("echo",))
                assert worker.seen_at >= worker.started_at
            assert await pipe.workers() == []

    run(scenario())


def test_a_worker_tells_which_jobs_it_runs(url: str) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe = Jobpipe(url, lease=LEASE)

        @pipe.job
        async def work() -> str:
            await gate.pass_through()
            return current_job().worker

        async with pipe, pipe.running():
            await work.enqueue(id="x")
            await gate.began.wait()
            workers = await seen(pipe, pipe.workers, lambda workers: workers[0].running)
            assert workers[0].running == ("x",)
            gate.go.set()
            job = await finished(pipe, "x")
            assert job.result == job.history[0].worker == workers[0].name

    run(scenario())


def test_two_processes_on_one_store_know_each_other(sqlite_url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(sqlite_url) as one, Jobpipe(sqlite_url) as two, one.running():
            async with two.running():
                assert len({worker.name for worker in await one.workers()}) == 2
            assert len(await one.workers()) == 1

    run(scenario())


# The heartbeat itself


class Unwell(MemoryStore):
    """A store whose heartbeats go wrong as told."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None
        self.beats = threading.Semaphore(0)

    def beat(self, worker: WorkerInfo, seconds: float) -> None:
        self.beats.release()
        if self.error is not None:
            raise self.error
        super().beat(worker, seconds)


@pytest.mark.parametrize("error", [StoreAwayError("it is away"), RuntimeError("a bug")], ids=["away", "bug"])
def test_the_heartbeat_goes_on_whatever_goes_wrong(
    away_from_home: Path, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async def scenario() -> None:
        store = Unwell()
        async with Jobpipe(store, lease=LEASE) as pipe, pipe.running():
            store.error = error
            for _ in range(3):
                assert await asyncio.to_thread(store.beats.acquire, timeout=LIMIT)
            store.error = None
            for _ in range(2):
                assert await asyncio.to_thread(store.beats.acquire, timeout=LIMIT)
            receipt = await pipe.enqueue("echo", 5)
            assert (await finished(pipe, receipt.id)).result == 5
            assert len(await pipe.workers()) == 1

    run(scenario())
    assert str(error) in caplog.text


def test_finished_jobs_are_pruned_when_their_time_is_over(url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(url, keep=0) as pipe:
            await pipe.enqueue("echo", id="old")
            await pipe.cancel("old")
            await pipe.enqueue("echo", id="waiting", delay=3600)
            async with pipe.running(workers=0):
                await seen(pipe, pipe.page, lambda page: len(page.jobs) == 1)
            assert [job.id for job in (await pipe.page()).jobs] == ["waiting"]

    run(scenario())


def test_the_pace_is_measured_while_it_runs(url: str) -> None:
    async def scenario() -> None:
        async with Jobpipe(url) as pipe, pipe.running():
            await pipe.enqueue("echo", id="x")
            await finished(pipe, "x")

            async def one_more() -> Stats:
                receipt = await pipe.enqueue("echo")
                await finished(pipe, receipt.id)
                return await pipe.stats()

            stats = await seen(pipe, one_more, lambda stats: stats.per_second["done"])
            assert stats.per_second["done"] > 0

    run(scenario())


def test_progress_is_written_by_the_heartbeat_while_the_event_loop_is_blocked(url: str) -> None:
    pipe = Jobpipe(url)
    seen: list[Progress | None] = []

    @pipe.job
    async def work() -> None:
        current_job().progress(0.5, "half")
        until_at = time.monotonic() + LIMIT
        while time.monotonic() < until_at:
            found = pipe.store.get(current_job().id)
            if found is not None and found.progress is not None:
                seen.append(found.progress)
                return
            time.sleep(0.005)

    async def scenario() -> None:
        async with pipe, pipe.running():
            await work.enqueue(id="x")
            await finished(pipe, "x")

    run(scenario())
    assert seen == [Progress(value=0.5, note="half")]


def test_the_heartbeat_has_a_connection_of_its_own(sqlite_url: str) -> None:
    with closing(Jobpipe(sqlite_url)) as pipe:
        service = pipe.make_service(workers=0)
        asyncio.run(service.start())
        assert service._heartbeat_store is not None
        assert service._heartbeat_store is not pipe.store
        asyncio.run(service.stop())


def test_nothing_is_logged_where_nothing_is_wrong(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        # Why the usual lease: a short one may run out on a busy machine, which is told.
        async with Jobpipe(url) as pipe, pipe.running():
            for number in range(10):
                await pipe.enqueue("echo", number, id=f"j{number}")
            for number in range(10):
                assert (await reached(pipe, f"j{number}", JobStatus.DONE)).result == number

    run(scenario())
    wrong: list[Any] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert wrong == []


def test_tidying_without_an_end_costs_no_lease(caplog: pytest.LogCaptureFixture) -> None:
    """A million finished jobs to prune, or lost ones to rescue, must not keep the thread from its leases."""
    extended = threading.Event()

    class Untidy(MemoryStore):
        def prune(self, keep: float, limit: int = 1_000, keep_failed: float | None = None) -> int:
            return limit  # there is always more

        def extend(self, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
            extended.set()
            return super().extend(leases, seconds)

    pipe = Jobpipe(Untidy(), lease=LEASE)

    @pipe.job
    async def slow() -> bool:
        return await asyncio.to_thread(extended.wait, LIMIT)

    async def scenario() -> Job:
        async with pipe, pipe.running():
            receipt = await slow.enqueue()
            return await finished(pipe, receipt.id)

    job = run(scenario())
    assert (job.status, job.attempts, job.result) == (JobStatus.DONE, 1, True)
    assert not rescued_lines(caplog)
