"""What a worker has at hand is not running: it is queued until its handler is called, and given back when that may take."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobpipe import Job, Jobpipe, JobStatus, Progress, current_job
from jobpipe.model.lease import ClaimResult, Lease, LeaseState, Settlement
from jobpipe.stores.memory import MemoryStore
from jobpipe.stores.sqlite import SqliteStore
from jobpipe.testing import ManualTime
from jobpipe.worker.runner import Runner
from rate_envelope_queue import RateLimited

from ...support.gates import AsyncGate
from ...support.jobs import finished, reached, seen
from ...support.waiting import run


@pytest.fixture
def pipe(url: str) -> Jobpipe:
    return Jobpipe(url, queue_size=0)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No job is given back, or not claimed ahead, because none has ended lately."""
    monkeypatch.setattr("jobpipe.worker.prefetch._WINDOW", 3600.0)
    monkeypatch.setattr("jobpipe.worker.prefetch._LONGEST_AHEAD", 3600.0)


def runner_of(pipe: Jobpipe) -> Runner:
    assert pipe.service is not None
    assert pipe.service.runner is not None
    return pipe.service.runner


async def claim_ahead(pipe: Jobpipe, first: str, *others: str) -> None:
    """Have the only slot busy with a job of the first type, and jobs of the others at hand; ids are types."""
    for _ in range(30):  # so that it expects short jobs
        receipt = await pipe.enqueue("echo")
        await finished(pipe, receipt.id)
    await pipe.enqueue(first, id=first)
    await reached(pipe, first, JobStatus.RUNNING)
    for other in others:
        await pipe.enqueue(other, id=other)
    await seen(pipe, lambda: leased(pipe), lambda ids: ids.issuperset(others))


async def leased(pipe: Jobpipe) -> set[str]:
    return {lease.id for lease in runner_of(pipe).held.leases()}


@pytest.mark.usefixtures("patient")
def test_what_is_claimed_ahead_is_queued_until_it_begins(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate, other = AsyncGate(), AsyncGate()
        pipe.job("block")(gate.pass_through)
        pipe.job("next")(other.pass_through)
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "next")
            job = await pipe.get("next")
            assert (job.status, job.attempts, job.started_at) == (JobStatus.QUEUED, 0, None)
            assert (await pipe.stats()).running == 1
            gate.go.set()
            job = await reached(pipe, "next", JobStatus.RUNNING)
            assert (job.attempts, job.started_at is None) == (1, False)
            other.go.set()
            job = await finished(pipe, "next")
            assert (job.status, job.attempts, len(job.history)) == (JobStatus.DONE, 1, 1)

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_store_is_told_again_of_one_that_was_locked_when_it_began(
    memory: Jobpipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        gate, other = AsyncGate(), AsyncGate()
        memory.job("echo")(lambda: None)
        memory.job("block")(gate.pass_through)
        memory.job("next")(other.pass_through)
        async with memory, memory.running(workers=1):
            await claim_ahead(memory, "block", "next")
            told, begin = list[Sequence[Lease]](), memory.store.begin

            def is_locked(leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
                told.append(leases)
                return [LeaseState.BUSY] * len(leases) if len(told) < 3 else begin(leases, started_at)

            monkeypatch.setattr(memory.store, "begin", is_locked)
            gate.go.set()
            await reached(memory, "next", JobStatus.RUNNING)
            assert [lease.id for leases in told for lease in leases] == ["next"] * 3
            other.go.set()
            assert (await finished(memory, "next")).status is JobStatus.DONE

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_what_is_claimed_ahead_has_waited_until_it_begins(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate, other = AsyncGate(), AsyncGate()
        pipe.job("block")(gate.pass_through)
        pipe.job("next", queue="others")(other.pass_through)
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "next")
            assert pipe.service is not None
            waits = pipe.service.meters.wait_seconds
            assert "others" not in waits
            gate.go.set()
            job = await reached(pipe, "next", JobStatus.RUNNING)
            other.go.set()
            assert sum(waits["others"].counts) == 1
            assert job.started_at is not None
            waited = (job.started_at - job.created_at).total_seconds()
            assert waits["others"].sum == pytest.approx(waited, abs=0.001)

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_what_expired_while_it_was_claimed_ahead_never_begins() -> None:
    async def scenario() -> None:
        gate, other, late = AsyncGate(), AsyncGate(), ManualTime()
        pipe = Jobpipe(MemoryStore(clock=late), queue_size=0, lease=86_400)
        pipe.job("block")(gate.pass_through)
        pipe.job("next")(other.pass_through)
        other.go.set()
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block")
            await pipe.enqueue("next", id="next", expires_in=3_600)
            await seen(pipe, lambda: leased(pipe), lambda ids: "next" in ids)
            (held,) = runner_of(pipe).held.waiting()
            assert 3_500 < held.begins_before - runner_of(pipe).held.now() <= 3_600
            held.begins_before = runner_of(pipe).held.now()  # an hour has passed, also for the worker
            late.elapse(3_600)
            assert (await pipe.get("next")).status is JobStatus.QUEUED
            gate.go.set()
            job = await finished(pipe, "next")
            assert (job.status, job.attempts) == (JobStatus.EXPIRED, 0)

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_short_jobs_that_were_claimed_ahead_are_settled_like_all_others(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "echo")
            gate.go.set()
            job = await finished(pipe, "echo")
            (attempt,) = job.history
            assert (job.status, job.attempts, attempt.number) == (JobStatus.DONE, 1, 1)
            assert attempt.began_at <= attempt.ended_at
            assert job.started_at == attempt.began_at

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_a_handler_that_blocks_the_event_loop_is_seen_running(sqlite_url: str) -> None:
    async def scenario() -> None:
        pipe, other = Jobpipe(sqlite_url, lease=0.3), Jobpipe(sqlite_url)
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        go = threading.Event()

        @pipe.job("hog")
        async def hog() -> None:
            go.wait(20)  # the very thing that one must not do

        def look() -> Job:
            """From another thread, since the loop is blocked."""

            async def seen_running() -> Job:
                async with other:
                    return await reached(other, "hog", JobStatus.RUNNING)

            try:
                return asyncio.run(seen_running())
            finally:
                go.set()

        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "hog")
            looking = asyncio.get_running_loop().run_in_executor(None, look)
            gate.go.set()
            assert (await looking).attempts == 1

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_progress_is_seen_of_one_that_was_claimed_ahead(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate, other = AsyncGate(), AsyncGate()
        pipe.job("block")(gate.pass_through)

        @pipe.job("report")
        async def report() -> None:
            current_job().progress(0.5, "half")
            await other.pass_through()

        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "report")
            gate.go.set()
            job = await seen(pipe, lambda: pipe.get("report"), lambda job: job.progress)
            assert job.progress == Progress(value=0.5, note="half")
            other.go.set()
            await finished(pipe, "report")

    run(scenario())


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_one_that_is_cancelled_never_runs_and_takes_no_slot(pipe: Jobpipe, is_async: bool) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        ran = []

        def victim() -> None:
            ran.append(True)

        async def avictim() -> None:
            ran.append(True)

        pipe.job("block")(gate.pass_through)
        pipe.job("victim")(avictim if is_async else victim)
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "victim")
            job = await pipe.cancel("victim")
            assert (job.status, job.attempts, job.history) == (JobStatus.CANCELLED, 0, ())
            gate.go.set()
            await finished(pipe, "block")
            receipt = await pipe.enqueue("echo")
            await finished(pipe, receipt.id)
            assert ran == []
            assert (await pipe.stats()).running == 0

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_none_of_a_type_that_cools_starts_because_it_was_at_hand(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        ran = []

        @pipe.job("busy")
        async def busy() -> None:
            ran.append(current_job().id)
            await gate.pass_through()
            raise RateLimited(3600)

        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "busy")
            await pipe.enqueue("busy", id="second")
            await seen(pipe, lambda: leased(pipe), lambda ids: "second" in ids)
            gate.go.set()
            await reached(pipe, "busy", JobStatus.SCHEDULED)
            await seen(pipe, lambda: leased(pipe), lambda ids: "second" not in ids)
            job = await pipe.get("second")
            assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)
            assert ran == ["busy"]

    run(scenario())


@pytest.mark.parametrize("reason", ["no job ends", "it waits for long"])
def test_what_waits_behind_a_slow_job_is_given_back(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    """Another process runs it meanwhile, and no attempt is lost."""

    async def scenario() -> None:
        gate = AsyncGate()
        busy, idle = Jobpipe(sqlite_url, queue_size=0), Jobpipe(sqlite_url)
        busy.job("block")(gate.pass_through)
        monkeypatch.setattr("jobpipe.worker.prefetch._LONGEST_AHEAD", 3600.0)
        monkeypatch.setattr("jobpipe.worker.prefetch._WINDOW", 3600.0)
        async with busy, idle, busy.running(workers=1):
            await claim_ahead(busy, "block", "echo")
            name = "_WINDOW" if reason == "no job ends" else "_LONGEST_AHEAD"
            monkeypatch.setattr(f"jobpipe.worker.prefetch.{name}", 0.01)
            async with idle.running():
                job = await finished(idle, "echo")
                assert (job.status, job.attempts, len(job.history)) == (JobStatus.DONE, 1, 1)
                assert job.history[0].worker == runner_of(idle).info().name
            gate.go.set()
            await finished(busy, "block")

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_none_of_a_queue_that_is_paused_starts_because_it_was_at_hand(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block", "echo")
            await pipe.pause("default")
            await seen(pipe, lambda: leased(pipe), lambda ids: "echo" not in ids)
            gate.go.set()
            await finished(pipe, "block")
            job = await pipe.get("echo")
            assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)

    run(scenario())


def test_nothing_is_claimed_ahead_while_no_job_ends(pipe: Jobpipe, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        async with pipe, pipe.running(workers=1):
            await claim_ahead(pipe, "block")
            monkeypatch.setattr("jobpipe.worker.prefetch._WINDOW", 0.0)
            await pipe.enqueue("echo", id="next")
            gate.go.set()  # the claim that found no room came before
            await finished(pipe, "next")
            assert (await pipe.get("next")).attempts == 1

    run(scenario())


@pytest.mark.usefixtures("patient")
def test_a_stop_gives_back_what_has_not_begun(pipe: Jobpipe) -> None:
    async def scenario() -> None:
        gate = AsyncGate()
        pipe.job("block")(gate.pass_through)
        async with pipe:
            async with pipe.running(workers=1):
                await claim_ahead(pipe, "block", "echo")
                asyncio.get_running_loop().call_soon(gate.go.set)
            assert (await pipe.get("block")).status is JobStatus.DONE
            job = await pipe.get("echo")
            assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)

    run(scenario())


class Slow(SqliteStore):
    """Takes its time to settle; notes how many jobs it shows as running after each step that may begin some."""

    def __init__(self, path: Path, **kwargs: Any) -> None:
        super().__init__(path, **kwargs)
        self.running: list[int] = []

    def _note(self) -> None:
        tallies = self.counts().tallies
        self.running.append(sum(each.count for each in tallies if each.status is JobStatus.RUNNING))

    def claim(self, *args: Any, **kwargs: Any) -> ClaimResult:
        result = super().claim(*args, **kwargs)
        self._note()
        return result

    def begin(self, leases: Sequence[Lease], started_at: Sequence[float]) -> list[LeaseState]:
        states = super().begin(leases, started_at)
        self._note()
        return states

    def settle(self, settlements: Sequence[Settlement]) -> list[bool]:
        time.sleep(0.02)  # Why: what has ended meanwhile is running for the store
        return super().settle(settlements)


def test_no_more_jobs_are_running_than_there_are_slots(tmp_path: Path) -> None:
    async def scenario(store: Slow) -> None:
        pipe = Jobpipe(store)

        @pipe.job("short")
        async def short() -> None:
            await asyncio.sleep(0.006)  # Why: longer than the store is left without word of a begin

        async with pipe, pipe.running(workers=2):
            receipts = [await pipe.enqueue("short") for _ in range(100)]
            for receipt in receipts:
                await finished(pipe, receipt.id)

    with closing(Slow(tmp_path / "jobs.db")) as store:
        run(scenario(store))
        assert max(store.running) == 2
