"""What ends a run from outside, or by its own fault: it costs that run alone, and its slot is free at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import pytest

from jobpipe import Job, JobStatus

from ....support.jobs import finished, reached
from ....support.waiting import until
from . import handlers
from .conftest import Lab, children_of, pipe_on, working

SOON = 10.0
"""Seconds in which a slot is free again, on a machine that is very busy; else it is a fraction of one."""


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def fails_with(job: Job, type: str) -> str:
    """The message of the error."""
    assert job.error is not None, job
    assert (job.status, job.error.type, job.attempts) == (JobStatus.FAILED, type, 1), job
    return job.error.message


@pytest.mark.parametrize("type", ["spins", "stuck"])
def test_at_the_deadline_it_is_killed(type: str, lab: Lab) -> None:
    async def scenario() -> None:
        pid = (await lab.finished("pid")).result  # Why: a cold start does not count, but takes its time
        began_at = time.monotonic()
        job = await lab.finished(type, deadline=0.3)
        assert time.monotonic() - began_at < 0.3 + SOON
        assert fails_with(job, "DeadlineExceeded") == "timed out after 0.3 s"
        await until(lambda: not is_alive(pid))

    lab.run(scenario())


def test_a_run_that_ended_before_its_deadline_is_no_late_one_where_the_event_loop_was_blocked(
    lab: Lab,
) -> None:
    async def scenario() -> None:
        await lab.finished("pid")
        id, _ = await lab.started("naps", 0.1, deadline=1.0)
        time.sleep(1.2)  # as a handler does that blocks it
        job = await finished(lab.pipe, id)
        assert (job.status, job.result) == (JobStatus.DONE, "rested"), job.error

    lab.run(scenario())


@pytest.mark.parametrize("type", ["spins", "stuck"])
def test_on_cancel_it_is_killed(type: str, lab: Lab) -> None:
    async def scenario() -> None:
        id, child = await lab.started(type)
        asked_at = time.monotonic()
        await lab.pipe.cancel(id)
        await reached(lab.pipe, id, JobStatus.CANCELLED)
        await until(lambda: not lab.children)
        assert time.monotonic() - asked_at < SOON
        await until(lambda: not is_alive(child.pid))

    lab.run(scenario())


def test_a_cold_start_does_not_count_for_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(handlers.SLOW_IMPORT, "1.0")
    with working(pipe_on("memory://")) as lab:
        job = lab.job("pid", deadline=0.9)
    assert job.status is JobStatus.DONE, job.error


def test_too_much_memory_kills_it(lab: Lab) -> None:
    async def scenario() -> None:
        assert (await lab.finished("hungry", 20)).status is JobStatus.DONE
        neighbour, _ = await lab.started("stuck")
        message = fails_with(await lab.finished("hungry", 128), "MemoryExceeded")
        assert message.endswith("the limit is 100,663,296")
        assert neighbour in lab.children
        await lab.pipe.cancel(neighbour)

    lab.run(scenario())


def test_memory_that_a_run_of_another_type_has_left_is_not_held_against_it(lab: Lab) -> None:
    large = lab.job("hoards", 128).result
    job = lab.job("hungry", 20)
    assert (job.status, job.result == large) == (JobStatus.DONE, False)


def test_bound_that_no_run_can_keep_is_told_at_once(lab: Lab) -> None:
    assert fails_with(lab.job("small"), "MemoryExceeded").endswith("the limit is 16,777,216")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_more_memory_than_could_ever_be_resident_is_refused_at_once(lab: Lab) -> None:
    async def scenario() -> None:
        fails_with(await lab.finished("hungry", 1 << 16), "MemoryError")
        assert (await lab.finished("hungry", 20)).status is JobStatus.DONE, "the process is fine"

    lab.run(scenario())


def test_a_child_that_has_grown_is_replaced_when_it_is_idle(lab: Lab) -> None:
    small = lab.job("leaks", 1).result
    assert lab.job("leaks", 50).result == small
    assert lab.job("leaks", 1).result != small


DEATHS = {
    "exit": "ended with exit code 7",
    "segmentation": "was killed by SIGSEGV",
    "kill": "was killed by SIGKILL",
    "close": "ended with exit code 1",
    "abort": "was killed by SIGABRT",
}


def test_a_process_that_dies_costs_the_attempt_of_its_job_alone(lab: Lab) -> None:
    async def scenario() -> None:
        neighbour, child = await lab.started("stuck")
        for how, words in DEATHS.items():
            message = fails_with(await lab.finished("dies", how), "ProcessDied")
            assert message == f"the process of the run {words}"
        assert lab.children[neighbour].pid == child.pid
        await lab.pipe.cancel(neighbour)
        await reached(lab.pipe, neighbour, JobStatus.CANCELLED)

    lab.run(scenario())


def test_a_flood_of_output_is_cut_and_what_is_dropped_is_counted(
    lab: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> str:
        job = await lab.finished("floods", 2)
        assert job.status is JobStatus.DONE
        out = ""

        def is_counted() -> bool:
            nonlocal out
            out += capfd.readouterr().out
            return f"bytes of the output of process {job.result} were dropped\n" in out

        await until(is_counted)  # though the process prints no more
        return out

    out = lab.run(scenario())
    assert len(out) < 2 * handlers.MEBIBYTE
    assert "x\n… " in out
    assert "\n\n" not in out


def test_a_fork_that_leaves_the_handler_is_nobody(lab: Lab, capfd: pytest.CaptureFixture[str]) -> None:
    own, fork = lab.job("forks").result
    assert own not in (0, os.getpid())
    assert not is_alive(fork)
    assert lab.job("pid").status is JobStatus.DONE
    assert capfd.readouterr().err == ""


def test_what_a_handler_has_started_is_killed_with_it(lab: Lab) -> None:
    async def scenario() -> None:
        id, _ = await lab.started("starts", handlers.SLEEPER)
        told = lab.progress_of(id)
        assert told is not None
        await lab.pipe.cancel(id)
        await until(lambda: not is_alive(int(told.note or 0)))

    lab.run(scenario())


def test_a_child_that_cannot_start_costs_an_attempt(caplog: pytest.LogCaptureFixture) -> None:
    pipe = pipe_on("memory://")
    pipe.address = "nowhere:pipe"
    with working(pipe) as lab:
        message = fails_with(lab.job("pid"), "ProcessDied")
    assert message == "the process could not start: ModuleNotFoundError: No module named 'nowhere'"
    why, what = caplog.records
    assert "Traceback (most recent call last)" in why.getMessage()
    assert what.exc_info is not None
    assert what.exc_info[2] is None, "our own frames are no news"


def test_a_type_that_the_import_does_not_declare_is_told_by_its_name() -> None:
    pipe = pipe_on("memory://")
    pipe.job("late", isolate=True, max_retries=0)(lambda: None)
    with working(pipe) as lab:
        message = fails_with(lab.job("late"), "RuntimeError")
        assert lab.job("pid").status is JobStatus.DONE
    assert message == (
        f"the type 'late' is unknown in child processes: the import of {pipe.address} does not declare it"
    )


def test_a_child_that_starts_is_not_given_back_while_other_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(handlers.SLOW_IMPORT, "1.0")
    with working(pipe_on("memory://")) as lab:

        async def scenario() -> None:
            await lab.pipe.enqueue("pid", id="cold", priority=10)
            started: set[int] = set()
            while (await lab.pipe.get("cold")).status is not JobStatus.DONE:
                await lab.pipe.types["pid-here"].enqueue_many([None] * 100)
                await asyncio.sleep(0.01)
                started |= {child.pid for child in children_of(lab)._all}
            assert len(started) == 1

        lab.run(scenario())


def test_a_child_that_has_just_died_gets_no_run(lab: Lab) -> None:
    async def scenario() -> None:
        pid = (await lab.finished("pid")).result
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        taken = children_of(lab)._taken(lab.pipe.types["pid"])
        assert taken is None or taken.pid != pid

    lab.run(scenario())


def test_a_child_that_died_while_it_was_idle_costs_nothing(lab: Lab) -> None:
    async def scenario() -> None:
        pid = (await lab.finished("pid")).result
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not is_alive(pid))  # it is no zombie either
        job = await lab.finished("pid")
        assert job.status is JobStatus.DONE
        assert job.result != pid

    lab.run(scenario())
