"""What the log says of runs: lines of those that failed, a line a minute, and the fields of a job on what its handler logs."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from jobpipe import Cancel, Fail, JobLogFilter, Jobpipe, Snooze
from jobpipe.model.job import JobStatus
from jobpipe.process.logs import setup_logging
from jobpipe.stores.base import Rescued
from jobpipe.worker.maintenance import Maintenance

from ...support.jobs import finished, reached
from ...support.waiting import run
from .conftest import run_one

JOBS = "jobpipe.jobs"


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == JOBS]


def about_runs(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in lines(caplog) if hasattr(record, "job_id")]


def fields(record: logging.LogRecord) -> tuple[Any, ...]:
    return tuple(getattr(record, name) for name in ("levelname", "job_id", "job_type", "attempt"))


def summaries(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in lines(caplog) if record.getMessage().startswith("runs that")]


# A run


def test_a_run_that_succeeds_is_a_line_at_debug_only(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run_one(memory, "echo")
    assert about_runs(caplog) == []
    caplog.set_level(logging.DEBUG, JOBS)
    run_one(memory, "echo", id="x")
    (line,) = about_runs(caplog)
    assert fields(line) == ("DEBUG", "x", "echo", 1)
    assert 0 <= line.seconds < 60  # type: ignore[attr-defined]
    assert line.getMessage() == f"job x (echo) done at attempt 1 in {line.seconds:.3f} s"  # type: ignore[attr-defined]


@pytest.mark.parametrize("is_async", [True, False])
def test_failed_attempts_are_warnings_and_the_last_is_an_error_with_the_exception(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    raised: list[Exception] = []

    def fail() -> None:
        raised.append(ValueError(f"no luck\n{'x' * 5_000}"))
        raise raised[-1]

    async def fail_async() -> None:
        fail()

    memory.job("unlucky", max_retries=1, base=0)(fail_async if is_async else fail)
    run_one(memory, "unlucky", id="x")
    lines = about_runs(caplog)
    assert [fields(line) for line in lines] == [
        ("WARNING", "x", "unlucky", 1),
        ("ERROR", "x", "unlucky", 2),
    ]
    assert lines[0].getMessage().startswith("job x (unlucky) failed at attempt 1 and runs again in 0 s: Val")
    assert lines[1].getMessage().startswith("job x (unlucky) failed at attempt 2, for good: ValueError: no")
    for line, error in zip(lines, raised, strict=True):
        assert line.exc_info is not None
        assert line.exc_info[:2] == (ValueError, error)
        assert line.exc_info[2] is error.__traceback__
        assert line.seconds >= 0  # type: ignore[attr-defined]
        shown = logging.Formatter().format(line)
        assert "in fail" in shown
        assert shown.count("  File ") == 1 + is_async  # from the handler on
        assert len(shown) < 10_000


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        (Fail("no such box"), "ERROR", "failed at attempt 1, for good: Fail: no such box"),
        (Cancel("not needed"), "INFO", "cancelled at attempt 1: Cancel: not needed"),
    ],
)
def test_what_ends_a_job_at_once_says_why(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture, error: Exception, level: str, text: str
) -> None:
    @memory.job
    async def end() -> None:
        raise error

    caplog.set_level(logging.INFO)
    run_one(memory, "end", id="x")
    (line,) = about_runs(caplog)
    assert (line.levelname, line.getMessage()) == (level, f"job x (end) {text}")
    assert (line.exc_info is not None) is (level == "ERROR")


def test_an_error_that_was_wrapped_here_is_itself_in_the_log(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    @memory.job
    async def odd() -> object:
        return object()

    run_one(memory, "odd")
    (line,) = about_runs(caplog)
    assert line.exc_info is not None
    assert line.exc_info[0] is not None
    assert line.exc_info[0].__name__ == "BadInputError"


def test_a_snooze_and_a_cancellation_from_outside_are_no_news(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    @memory.job
    async def later() -> None:
        raise Snooze(3600)

    @memory.job
    async def long() -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with memory, memory.running():
            await reached(memory, (await later.enqueue()).id, JobStatus.SCHEDULED)
            id = (await long.enqueue()).id
            await reached(memory, id, JobStatus.RUNNING)
            await memory.cancel(id)
            await finished(memory, id)

    run(scenario())
    assert about_runs(caplog) == []
    assert summaries(caplog) == ["runs that ended: later 1 snoozed; long 1 cancelled"]


def test_a_job_whose_worker_was_lost_for_the_last_time_is_an_error(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = [
        Rescued("a", "w1", JobStatus.QUEUED, "work", 1),
        Rescued("b", "w1", JobStatus.FAILED, "work", 4),
    ]
    with closing(memory):
        monkeypatch.setattr(memory.store, "rescue", lambda: lost)
        maintenance = memory.make_service().maintenance(memory.store)
        maintenance.do(0)
    found = [record for record in caplog.records if "was lost by its worker" in record.getMessage()]
    assert [fields(record) for record in found] == [("WARNING", "a", "work", 1), ("ERROR", "b", "work", 4)]


# The line a minute


def test_once_a_minute_a_line_says_how_many_ended_by_type_and_outcome(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, JOBS)
    monkeypatch.setattr("jobpipe.worker.service.Heartbeat", NoHeartbeat)

    @memory.job(max_retries=1, base=0)
    async def unlucky() -> None:
        raise OSError

    async def scenario() -> None:
        async with memory, memory.running():
            maintenance = NoHeartbeat.last
            maintenance.do(1_000.0)
            assert summaries(caplog) == []  # none has ended
            for _ in range(3):
                await finished(memory, (await memory.enqueue("echo")).id)
            await finished(memory, (await unlucky.enqueue()).id)
            maintenance.do(1_059.9)
            assert summaries(caplog) == []
            maintenance.do(1_060.0)
            assert summaries(caplog) == ["runs that ended: echo 3 done; unlucky 1 retried, 1 failed"]
            maintenance.do(1_120.0)  # nothing since
            await finished(memory, (await memory.enqueue("echo")).id)
            maintenance.do(1_180.0)
            assert summaries(caplog)[1:] == ["runs that ended: echo 1 done"]
            await finished(memory, (await memory.enqueue("echo")).id)
        assert summaries(caplog)[2:] == ["runs that ended: echo 1 done"]  # the rest, at the stop

    run(scenario())
    assert {record.levelname for record in lines(caplog) if not hasattr(record, "job_id")} == {"INFO"}


def test_the_line_a_minute_is_bounded_however_many_types_there_are(
    memory: Jobpipe, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, JOBS)
    for number in range(30):
        memory.job(f"t{number}")(lambda: None)

    async def scenario() -> None:
        async with memory, memory.running():
            for number in [*range(30), 29]:
                await finished(memory, (await memory.enqueue(f"t{number}")).id)

    run(scenario())
    (line,) = summaries(caplog)
    assert line.startswith("runs that ended: t29 2 done; t0 1 done; ")
    assert line.endswith("; 10 of 10 other types")


class NoHeartbeat:
    """Does nothing by itself: the test says what time it is."""

    last: Maintenance

    def __init__(self, maintenance: Maintenance, runner: object) -> None:
        NoHeartbeat.last = maintenance

    def start(self) -> None: ...

    def stop(self) -> None:
        self.last.leave()


# What a handler logs


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    """Lines as `jobpipe serve` with JSON logs writes them."""
    stream = io.StringIO()
    hook = threading.excepthook
    setup_logging("json", stream, filters=[JobLogFilter()])
    yield stream
    logging.captureWarnings(False)
    threading.excepthook = hook


def test_what_a_handler_logs_carries_the_fields_of_its_job(memory: Jobpipe, output: io.StringIO) -> None:
    logger = logging.getLogger("shop")

    @memory.job
    def sync() -> None:
        logger.info("in a thread")

    @memory.job(max_retries=1, base=0)
    async def coroutine() -> None:
        logger.info("on the loop", extra={"order": 17})
        await asyncio.gather(asyncio.create_task(inner()), asyncio.to_thread(logger.info, "elsewhere"))
        logger.info("mine", extra={"job_id": "of another"})
        raise OSError

    async def inner() -> None:
        logger.info("in a task")

    logger.info("before")
    run_one(memory, "sync", id="s")
    run_one(memory, "coroutine", id="c")
    events = [json.loads(line) for line in output.getvalue().splitlines()]
    own = [event for event in events if event["logger"] == "shop"]
    shown = {
        (event["message"], event.get("job_id"), event.get("job_type"), event.get("attempt")) for event in own
    }
    of_c = {
        (text, "c", "coroutine", attempt)
        for text in ("on the loop", "in a task", "elsewhere")
        for attempt in (1, 2)
    }
    assert shown == {
        ("before", None, None, None),
        ("in a thread", "s", "sync", 1),
        ("mine", "of another", None, None),
        *of_c,
    }
    assert [event["order"] for event in own if event["message"] == "on the loop"] == [17, 17]
    (failed,) = [event for event in events if event["level"] == "ERROR"]
    assert (failed["job_id"], failed["job_type"], failed["attempt"]) == ("c", "coroutine", 2)
    assert failed["seconds"] >= 0
    assert failed["exception"].startswith("Traceback")
