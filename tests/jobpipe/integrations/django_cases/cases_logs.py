"""What is logged of a task: once in the log of the worker, and in the log of its job what the task itself has logged."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from . import project, tasks
from .project import backend_with, work

LOGGERS = (project.NAME, "jobpipe.jobs")


@pytest.fixture(autouse=True, scope="module")
def thread_of_asgiref() -> None:
    asyncio.run(sync_to_async(threading.get_ident)())


def told(caplog: pytest.LogCaptureFixture, level: int) -> list[tuple[str, Any]]:
    """Who has told at that level, and with which exception."""
    return [
        (each.name, each.exc_info[0] if each.exc_info else None)
        for each in caplog.records
        if each.name in LOGGERS and each.levelno == level
    ]


@pytest.mark.parametrize(
    ("own", "args", "error"),
    [
        (tasks.fail, ["OwnError"], tasks.OwnError),
        (tasks.fail, ["SystemExit"], SystemExit),
        (tasks.fail_async, [], tasks.OwnError),
        (tasks.return_no_json, [], None),
    ],
)
def test_a_failure_is_an_error_once(
    caplog: pytest.LogCaptureFixture, own: Any, args: list[str], error: type[BaseException] | None
) -> None:
    caplog.set_level(logging.INFO)
    with backend_with() as backend:
        work(backend, own.enqueue(*args))
    ((name, kind),) = told(caplog, logging.ERROR)
    assert (name, kind) == (project.NAME, error or kind)
    assert kind is not None
    (line,) = (each for each in caplog.records if "failed at attempt 1, for good: " in each.getMessage())
    assert (line.levelname, line.exc_info, line.exc_text) == ("INFO", None, None)


def test_attempts_that_fail_are_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with backend_with() as backend:
        work(backend, tasks.fail_twice.enqueue())
    assert told(caplog, logging.WARNING) == [("jobpipe.jobs", tasks.OwnError)] * 2
    assert told(caplog, logging.ERROR) == []


@pytest.mark.parametrize("silenced", LOGGERS)
def test_a_logger_that_is_off_leaves_it_to_the_other(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, silenced: str
) -> None:
    (other,) = {*LOGGERS} - {silenced}
    monkeypatch.setattr(logging.getLogger(silenced), "disabled", True)
    with backend_with() as backend:
        work(backend, tasks.fail.enqueue())
    assert told(caplog, logging.ERROR) == [(other, ValueError)]


def test_the_log_of_a_job_has_what_the_task_has_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with backend_with() as backend:
        results = tasks.tell_log.enqueue(), tasks.tell_log.enqueue("and fails")
        work(backend, *results)
        kept = [[line.message for line in backend.pipe.logs_sync(each.id).lines] for each in results]
    assert kept == [["told"], ["told"]]
    assert (project.NAME, None) in told(caplog, logging.INFO)  # as Django has it
    plain = vars(logging.makeLogRecord({})).keys()
    assert all(
        vars(each).keys() <= {*plain, "message", "asctime"}
        for each in caplog.records
        if each.name == project.NAME
    )
