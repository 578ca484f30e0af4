"""Nothing is left behind: no process, no zombie, no descriptor, no file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jobpipe import JobStatus
from jobpipe.model.counts import ChildInfo
from jobpipe.worker.isolation.messages import Call, Reply
from jobpipe.worker.isolation.orphans import Guard
from jobpipe.worker.isolation.process import ChildProcess

from ....support.jobs import finished
from ....support.waiting import LIMIT, eventually, run, until
from . import handlers
from .conftest import children_of, pipe_on, runner_of, working

PROC = Path("/proc")
KILLS = 50
BUSY = 20.0
"""Seconds, less than a writer waits for the lock of a SQLite file."""
only_linux = pytest.mark.skipif(not PROC.is_dir(), reason="the system has no /proc")


def descriptors() -> set[str]:
    return {f"{each.name}: {os.readlink(each)}" for each in (PROC / "self/fd").iterdir() if each.is_symlink()}


def children() -> list[int]:
    """Those of this process, zombies too."""
    found = []
    for task in (PROC / "self/task").iterdir():
        found += (task / "children").read_text().split()
    return [int(pid) for pid in found]


def is_gone(pid: int) -> bool:
    try:
        return "Z" in (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True


@only_linux
def test_after_a_stop_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before, own = descriptors(), set(children())
    with working(pipe_on("memory://", lease=5)) as lab:
        lab.job("pid")
        lab.job("hungry", 128)
    assert set(children()) <= own
    assert {each.partition(":")[0] for each in descriptors() - before} == set()
    assert list(tmp_path.iterdir()) == []


def test_what_runs_at_the_end_of_the_grace_is_killed_and_given_back() -> None:
    async def scenario() -> None:
        async with pipe_on("memory://") as pipe:
            service = pipe.make_service()
            await service.start()
            await pipe.enqueue("stuck", id="late")
            child = await until(lambda: runner_of(pipe).info().children.get("late"))
            await service.stop(grace=0)
            assert is_gone(child.pid)
            job = await pipe.get("late")
            assert (job.status, job.attempts) == (JobStatus.QUEUED, 0)

    run(scenario())


def test_a_job_whose_child_holds_the_lock_of_the_store_is_given_back(
    sqlite_url: str, away_from_home: Path
) -> None:
    async def scenario() -> None:
        async with pipe_on(sqlite_url) as pipe:
            service = pipe.make_service(lease=60)
            await service.start()
            await pipe.enqueue("keeps-its-transaction-open", str(away_from_home / "jobs.db"), id="late")
            await until(lambda: any(run.progress for run in runner_of(pipe).held.all()))
            began_at = time.monotonic()
            await service.stop(grace=0)
            assert time.monotonic() - began_at < BUSY, "it is killed before the store is asked"
            job = await pipe.get("late")
            assert (job.status, job.attempts, job.steps) == (JobStatus.QUEUED, 0, ())

    run(scenario())


def test_a_store_that_does_not_answer_holds_up_no_kill(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with pipe_on(sqlite_url) as pipe:
            service = pipe.make_service()
            await service.start()
            await pipe.enqueue("stuck", id="late")
            child = await until(lambda: runner_of(pipe).info().children.get("late"))
            store = pipe._lazy_store().store
            release = store.release

            def release_late(*args: Any) -> Any:
                eventually(lambda: is_gone(child.pid), "killed", BUSY)
                return release(*args)

            monkeypatch.setattr(store, "release", release_late)
            await service.stop(grace=0)
            assert (await pipe.get("late")).status is JobStatus.QUEUED

    run(scenario())


def other_than(first: ChildInfo, found: ChildInfo | None) -> ChildInfo | None:
    return None if found is None or found.pid == first.pid else found


def test_a_new_run_of_a_job_is_none_of_the_business_of_one_that_was_lost() -> None:
    with working(pipe_on("memory://")) as lab:

        async def scenario() -> None:
            id, first = await lab.started("stuck")
            (lost,) = lab.worker.held.all()
            lab.worker.held.lose(lost)
            lab.pipe._lazy_store().store.release([lost.claim.lease], [None])
            lab.worker.claims.wake_from_thread()
            second = await until(lambda: other_than(first, lab.children.get(id)))
            await until(lambda: is_gone(first.pid))
            assert lab.children[id].pid == second.pid
            await until(lambda: lab.progress_of(id))
            await lab.pipe.cancel(id)
            assert (await finished(lab.pipe, id)).status is JobStatus.CANCELLED
            assert lab.children == {}

        lab.run(scenario())


async def answer(_: Call) -> Reply:
    raise AssertionError("nothing is asked")


@only_linux
def test_kills_leave_neither_zombies_nor_descriptors() -> None:
    async def scenario() -> None:
        before, own = descriptors(), set(children())
        for _ in range(KILLS):
            child = ChildProcess(answer)
            child.kill()
            await child.bury()
        assert set(children()) <= own
        assert len(descriptors()) == len(before)

    run(scenario())


@only_linux
def test_a_kill_hits_the_run_that_it_is_meant_for() -> None:
    """A child that has been used for another run meanwhile is not touched by who cancels the first."""
    with working(pipe_on("memory://"), workers=1) as lab:

        async def scenario() -> None:
            first = await lab.pipe.enqueue("pid", id="first")
            second = await lab.pipe.enqueue("about", "x", id="second")
            await finished(lab.pipe, first.id)
            lab.worker.held.cancel([first.id])
            assert (await finished(lab.pipe, second.id)).status is JobStatus.DONE

        lab.run(scenario())


@only_linux
def test_the_guardian_kills_groups_when_its_worker_is_gone() -> None:
    guard = Guard()
    sleepers = [os.posix_spawn(handlers.SLEEPER[0], handlers.SLEEPER, os.environ, setsid=True) for _ in "ab"]
    try:
        for pid in sleepers:
            guard.add(pid)
        guard.discard(sleepers[1])
        os.kill(guard._process.pid, signal.SIGKILL)  # type: ignore[union-attr]
        eventually(lambda: is_gone(guard._process.pid))  # type: ignore[union-attr]
        guard.look()
        assert guard._process is not None
        os.kill(guard._process.pid, signal.SIGKILL)
        eventually(lambda: is_gone(guard._process.pid))  # type: ignore[union-attr]
        guard.add(sleepers[0])  # by another one, which knows all
        guard.stop()
        eventually(lambda: is_gone(sleepers[0]))
        assert not is_gone(sleepers[1])
    finally:
        for pid in sleepers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


FORKS = """
import os, signal
from jobpipe.worker.isolation.orphans import Guard

guard = Guard()
guard.add(2**22 + 1)  # no process has that number
fork = os.fork()
if fork == 0:
    signal.pause()
guard.stop()
os.kill(fork, signal.SIGKILL)
"""


def test_the_guardian_does_not_wait_for_the_forks_of_its_worker() -> None:
    program = subprocess.Popen([sys.executable, "-c", FORKS], start_new_session=True)
    try:
        assert program.wait(LIMIT) == 0
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()


def test_a_start_that_is_cancelled_leaves_nothing() -> None:
    with working(pipe_on("memory://"), workers=1) as lab:

        async def scenario() -> None:
            await lab.pipe.enqueue("pid", id="cold")
            (child,) = await until(lambda: list(children_of(lab)._all))
            await lab.pipe.cancel("cold")
            await until(lambda: is_gone(child.pid))

        lab.run(scenario())
