"""What handlers can do in a child process: everything that they can do elsewhere."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from jobpipe import JobStatus

from ....support.jobs import reached
from .conftest import Lab, pipe_on, working


def test_isolated_types_run_in_one_child_that_is_used_again(lab: Lab) -> None:
    first, second, third = (lab.job(type).result for type in ("pid", "pid", "pid-async"))
    assert first == second == third != os.getpid()
    assert lab.job("pid-here").result == os.getpid()


def test_payload_and_result_cross_as_json(lab: Lab) -> None:
    assert lab.job("echoed", {"a": 1, "ü": 2**53}).result == {"a": 1, "ü": 2**53}


def test_a_payload_that_does_not_fit_fails_the_job_for_good(lab: Lab) -> None:
    async def scenario() -> None:
        lab.pipe.types["echoed"].encode = lambda payload: b'"text"'  # type: ignore[method-assign]
        try:
            job = await lab.finished("echoed", max_retries=5)
        finally:
            del lab.pipe.types["echoed"].encode
        assert (job.status, job.attempts) == (JobStatus.FAILED, 1)
        assert job.error is not None
        assert job.error.type == "BadInputError"

    lab.run(scenario())


def test_stamps_stand_around_the_handler_in_the_child(lab: Lab) -> None:
    assert lab.job("stamped", "text").result == "<TEXT>"


def test_the_current_job_is_there_with_progress_and_logs(lab: Lab) -> None:
    job = lab.job("about", "this")
    assert job.result["id"] == job.id
    assert job.result["attempts"] == 1
    assert job.result["worker"] == job.history[0].worker
    assert 40 < job.result["remaining"] <= 50
    assert job.progress is not None
    assert (job.progress.value, job.progress.note) == (0.5, "half")
    (line,) = lab.run(lab.pipe.logs(job.id)).lines
    assert (line.level, line.logger, line.message) == ("WARNING", "handlers", "it says this")


def test_what_is_logged_and_printed_there_is_logged_and_printed_by_the_worker(
    lab: Lab, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    job = lab.job("about", "100%")
    (record,) = (each for each in caplog.records if each.name == "handlers")
    assert record.getMessage() == "it says 100%"
    assert record.__dict__["job_id"] == job.id
    lab.job("pid")  # by then, what was printed before has come
    assert "printed 100%" in capfd.readouterr().out


def test_what_is_printed_is_kept_with_the_job_where_that_is_wanted() -> None:
    with working(pipe_on("memory://", job_logs="all")) as lab:
        job = lab.job("about", "this")
        lines = lab.run(lab.pipe.logs(job.id)).lines
    assert [(line.logger, line.message) for line in lines] == [
        ("handlers", "it says this"),
        ("print", "printed this"),
    ]


@pytest.mark.parametrize("job", ["another", 17])
def test_whatever_is_logged_costs_no_run(job: str | int, lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    done = lab.job("logs", job)
    assert done.status is JobStatus.DONE, done.error
    told = ["of another job", "a name that is no text: \\udce9", "words of a class of their own"]
    records = [each for each in caplog.records if each.name == "handlers"]
    assert [each.getMessage() for each in records] == told
    assert {each.__dict__["job_id"] for each in records} == {done.id}
    assert [line.message for line in lab.run(lab.pipe.logs(done.id)).lines] == told


def test_a_text_of_a_class_of_its_own_crosses(lab: Lab) -> None:
    assert lab.job("finds-itself").result == "running"


def test_a_fork_may_log_and_print(capfd: pytest.CaptureFixture[str]) -> None:
    with working(pipe_on("memory://", job_logs="all")) as lab:
        assert lab.job("prints-in-a-fork").result == 0
    out, err = capfd.readouterr()
    assert (out, err) == ("printed in a fork\n", "logged in a fork\n")


def test_the_process_leads_a_group_and_is_deaf_to_interrupts(lab: Lab) -> None:
    assert lab.job("process").result == {
        "is_leader": True,
        "ignores_interrupts": True,
        "core": 0,
        "arguments": [],
    }


def test_errors_are_judged_by_their_class_in_the_child(lab: Lab) -> None:
    async def scenario() -> None:
        for kind, status in (("value", "scheduled"), ("exit", "scheduled"), ("key", "failed")):
            id = (await lab.pipe.enqueue("raises", kind, id=kind)).id
            job = await reached(lab.pipe, id, JobStatus(status))
            assert job.error is not None
            assert job.error.traceback is not None
            assert "in raises" in job.error.traceback
            assert "child_run" not in job.error.traceback
        assert (await lab.pipe.get("exit")).error.type == "SystemExit"  # type: ignore[union-attr]

    lab.run(scenario())


def test_an_event_loop_outlives_a_handler_that_exits(lab: Lab) -> None:
    pid = lab.job("pid-async").result
    error = lab.job("exits").error
    assert error is not None
    assert (error.type, error.message) == ("SystemExit", "3")
    assert lab.job("pid-async").result == pid


async def order(lab: Lab) -> None:
    """A job with steps, a sleep and a signal, which another job in a child sends."""
    await lab.pipe.enqueue("ordered", id="order")
    await reached(lab.pipe, "order", JobStatus.WAITING)
    sender = await lab.finished("signals", "order")
    assert sender.status is JobStatus.DONE, sender
    job = await reached(lab.pipe, "order", JobStatus.DONE, JobStatus.FAILED)
    first, second, more, answer = job.result
    assert first != os.getpid()
    assert (second, more, answer) == ("two", "order-more", {"from": sender.id})
    assert [step.name for step in job.steps] == ["first", "second"]
    assert job.attempts == 1
    assert (await reached(lab.pipe, "order-more", JobStatus.DONE)).result != os.getpid()


def test_steps_sleeps_signals_and_enqueue_work_through_the_worker(lab: Lab) -> None:
    lab.run(order(lab))


def test_what_a_pipe_can_tell_it_tells_in_a_child_too(lab: Lab) -> None:
    own, other, workers, running = lab.job("waits-for-another").result
    assert len({own, other, os.getpid()}) == 3
    assert (workers, running) == (1, 1)


@pytest.mark.parametrize("store", ["sqlite", "postgres", "redis"])
def test_so_they_do_on_other_stores(store: str, request: pytest.FixtureRequest) -> None:
    with working(pipe_on(request.getfixturevalue(f"{store}_url"))) as lab:
        lab.run(order(lab))


def test_finish_writes_in_a_transaction_of_the_child(sqlite_url: str, away_from_home: Path) -> None:
    path = str(away_from_home / "jobs.db")
    with working(pipe_on(sqlite_url)) as lab:
        job = lab.job("in-transaction", {"path": path, "commits": True})
        assert (job.status, job.result) == (JobStatus.DONE, "charged")
        error = lab.job("in-transaction", {"path": path, "commits": False}).error
        assert error is not None
        assert error.message == "the transaction in which the handler called `finish` was not committed"
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT job FROM charges").fetchall() == [(job.id,)]
    connection.close()


def test_a_finish_that_was_refused_is_none(lab: Lab) -> None:
    job = lab.job("catches-the-refusal")
    assert (job.status, job.result) == (JobStatus.DONE, "done otherwise"), job.error


def test_a_write_past_the_transaction_of_the_child_is_refused_at_once(
    sqlite_url: str, away_from_home: Path
) -> None:
    with working(pipe_on(sqlite_url)) as lab:
        job = lab.job("writes-past-its-transaction", str(away_from_home / "jobs.db"))
        assert job.status is JobStatus.DONE, job.error
        *refused, more = job.result
        assert len(refused) == 2
        assert all("while the handler has its own transaction open" in each for each in refused)
        assert more == "more"


def test_a_child_is_replaced_after_its_last_job(lab: Lab) -> None:
    async def scenario() -> None:
        pids = [(await lab.finished("twice")).result for _ in range(4)]
        assert len(set(pids)) >= 2

    lab.run(scenario())
