"""What Django's own tests ask of a backend, by behaviour: enqueueing, results, validation, signals and checks."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.test import override_settings
from django.utils import timezone

from . import project, tasks
from .project import backend_with, work

if project.NAME == "django.tasks":
    from django.tasks import default_task_backend, task, task_backends
    from django.tasks.exceptions import TaskResultMismatch
else:
    from django_tasks import default_task_backend, task, task_backends
    from django_tasks.exceptions import TaskResultMismatch

from jobpipe import BadInputError
from jobpipe.integrations.django import JobpipeBackend, task_options
from jobpipe.integrations.django.framework import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from jobpipe.integrations.django.options import TaskOptions
from jobpipe.jobtypes.terms import TypeOptions


@pytest.fixture(autouse=True, scope="module")
def thread_of_asgiref() -> None:
    """It stays: better before a test than within one."""
    asyncio.run(sync_to_async(threading.get_ident)())


@pytest.fixture(autouse=True)
def backend() -> Iterator[JobpipeBackend]:
    with backend_with() as backend:
        yield backend
    tasks.CALLS.clear()


def test_the_backend_is_the_one_of_the_settings(backend: JobpipeBackend) -> None:
    assert default_task_backend == task_backends["default"] == backend
    assert (backend.alias, backend.options) == ("default", {"store": "memory://"})
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


@pytest.mark.parametrize("own", [tasks.note, tasks.note_async])
def test_what_is_enqueued_is_ready_and_runs(backend: JobpipeBackend, own: Any) -> None:
    result = own.enqueue(1, two=3)
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.READY, False, 0)
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.task, result.args, result.kwargs) == (own, [1], {"two": 3})
    assert (result.backend, result.errors, result.worker_ids) == ("default", [], [])
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value

    work(backend, result)
    assert tasks.CALLS == [((1,), {"two": 3})]
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.SUCCESSFUL, True, 1)
    assert result.return_value is None
    assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
    assert result.errors == []


def test_tasks_are_enqueued_and_looked_up_by_coroutines(backend: JobpipeBackend) -> None:
    async def scenario() -> None:
        result = await tasks.note.aenqueue(1, two=3)
        assert (result.status, result.args, result.kwargs) == (TaskResultStatus.READY, [1], {"two": 3})
        assert await backend.aget_result(result.id) == result
        assert await tasks.note.aget_result(result.id) == result
        await result.arefresh()
        with pytest.raises(TaskResultDoesNotExist):
            await backend.aget_result(str(uuid4()))
        with pytest.raises(TaskResultMismatch):
            await tasks.note_async.aget_result(result.id)
        # Within a loop the plain call works, too, though this thread has a connection.
        assert tasks.add.enqueue(1).status == TaskResultStatus.READY

    connections["default"].ensure_connection()
    asyncio.run(scenario())


def test_a_result_is_that_of_the_store(backend: JobpipeBackend) -> None:
    result = tasks.add.enqueue(40)
    assert backend.get_result(result.id) == result == tasks.add.get_result(result.id)
    work(backend, result)
    assert result.return_value == 42
    assert backend.get_result(result.id) == result


def test_a_result_that_is_none_of_a_task_does_not_exist(backend: JobpipeBackend) -> None:
    for id in (str(uuid4()), "123", "a/b", ""):
        with pytest.raises(TaskResultDoesNotExist):
            backend.get_result(id)
    other = backend.pipe.enqueue_sync("echo", {"args": []})
    odd = backend.pipe.enqueue_sync("subprocess.check_output", {"args": [["false"]]})
    for receipt in (other, odd):
        with pytest.raises(TaskResultDoesNotExist):
            backend.get_result(receipt.id)
    with pytest.raises(TaskResultMismatch):
        tasks.note.get_result(tasks.add.enqueue(1).id)


def test_a_job_of_another_caller_is_a_task_with_its_defaults(backend: JobpipeBackend) -> None:
    """That of a schedule, or one over HTTP."""
    pipe = backend.discover()
    bare = pipe.enqueue_sync(tasks.note.module_path)
    sent = pipe.enqueue_sync(tasks.send.module_path, {"kwargs": {"to": "ada"}}, id="mail-1")
    job = pipe.get_sync(sent.id)
    assert (job.queue, job.priority, job.max_retries) == ("mail", 7, 0)
    results = [backend.get_result(each.id) for each in (bare, sent)]
    assert (results[1].task, results[1].enqueued_at) == (tasks.send, job.created_at)
    work(backend, *results)
    assert [each.return_value for each in results] == [None, "sent to ada"]
    assert tasks.CALLS == [((), {})]
    for wrong in ([1], {"arguments": [1]}, {"args": 1}, 5):
        with pytest.raises(BadInputError, match="payload"):
            pipe.enqueue_sync(tasks.add.module_path, wrong)


def test_a_result_is_found_by_a_process_that_has_not_seen_the_task(backend: JobpipeBackend) -> None:
    receipt = backend.pipe.enqueue_sync(tasks.add.module_path, {"args": [1]})
    assert tasks.add.module_path not in backend.pipe.types
    assert backend.get_result(receipt.id).task == tasks.add


def test_a_test_that_changes_the_backends_has_a_pipe_of_its_own(backend: JobpipeBackend) -> None:
    with backend_with() as other:
        assert other.options == backend.options
        assert other.pipe is not backend.pipe


@pytest.mark.parametrize("own", [tasks.note, tasks.note_async, tasks.fail_async])
def test_receivers_of_signals_may_use_the_database(backend: JobpipeBackend, own: Any) -> None:
    seen: list[Any] = []

    def receiver(task_result: Any, **_: Any) -> None:
        with connections["default"].cursor() as cursor:
            seen.append(cursor.execute("SELECT 1").fetchone())

    for signal in (task_started, task_finished):
        signal.connect(receiver)
    try:
        work(backend, own.enqueue())
    finally:
        for signal in (task_started, task_finished):
            signal.disconnect(receiver)
    assert seen == [(1,), (1,)]


@pytest.mark.parametrize("own", [tasks.note, tasks.note_async, tasks.fail])
def test_an_error_of_a_receiver_changes_nothing_and_is_logged(
    backend: JobpipeBackend, caplog: pytest.LogCaptureFixture, own: Any
) -> None:
    def receiver(**_: Any) -> None:
        raise RuntimeError("the receiver broke")

    signals = (task_started, task_finished)
    for signal in signals:
        signal.connect(receiver)
    try:
        result = own.enqueue()
        work(backend, result)
    finally:
        for signal in signals:
            signal.disconnect(receiver)
    assert (result.status, result.attempts) == ("FAILED" if own is tasks.fail else "SUCCESSFUL", 1)
    assert "the receiver broke" not in str(result.errors)
    told = [each for each in caplog.records if each.name == "django.dispatch"]
    assert [each.exc_info[0] for each in told if each.exc_info] == [RuntimeError] * 2


@pytest.mark.parametrize(
    ("kind", "path", "line"),
    [
        ("ValueError", "builtins.ValueError", "ValueError: it broke"),
        ("SystemExit", "builtins.SystemExit", "SystemExit: it broke"),
        ("OwnError", f"{tasks.__name__}.OwnError", f"{tasks.__name__}.OwnError: it broke"),
        ("Chained", f"{tasks.__name__}.OwnError", f"{tasks.__name__}.OwnError: several\nlines: of it"),
        ("Fail", "jobpipe.errors.Fail", "jobpipe.errors.Fail: it broke"),
    ],
)
def test_an_error_fails_the_task_and_is_in_its_result(
    backend: JobpipeBackend, kind: str, path: str, line: str
) -> None:
    result = tasks.fail.enqueue(kind)
    work(backend, result)
    assert (result.status, result.is_finished, result.attempts) == (TaskResultStatus.FAILED, True, 1)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value
    (error,) = result.errors
    assert error.exception_class_path == path
    assert issubclass(error.exception_class, BaseException)
    assert error.traceback.strip().endswith(line), error.traceback
    assert "in fail\n" in error.traceback
    assert len(result.worker_ids) == 1
    assert result.enqueued_at <= result.started_at <= result.finished_at


def test_an_error_of_a_coroutine_fails_the_task(backend: JobpipeBackend) -> None:
    result = tasks.fail_async.enqueue()
    work(backend, result)
    assert result.status == TaskResultStatus.FAILED
    assert result.errors[0].exception_class is tasks.OwnError


def test_retries_are_asked_for_and_leave_their_errors(backend: JobpipeBackend) -> None:
    result = tasks.fail_twice.enqueue()
    work(backend, result)
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "at last")
    assert (result.attempts, len(result.worker_ids)) == (3, 3)
    assert [error.exception_class for error in result.errors] == [tasks.OwnError] * 2
    assert result.started_at < result.last_attempted_at <= result.finished_at


def test_a_value_that_is_no_json_fails_the_task_without_a_retry(backend: JobpipeBackend) -> None:
    result = tasks.return_no_json.enqueue()
    work(backend, result)
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert result.errors[0].exception_class is TypeError
    assert "Unsupported type" in result.errors[0].traceback


def test_a_task_may_take_its_context(backend: JobpipeBackend) -> None:
    result, other = tasks.tell_context.enqueue("hello"), tasks.tell_context_async.enqueue()
    work(backend, result, other)
    assert (result.return_value, other.return_value) == (["hello", 2, result.id, 1], 1)
    assert [each.id for each in tasks.CALLS] == [result.id] * 2
    assert result.args == ["hello"]


@pytest.mark.parametrize("wrong", [[object()], [{1, 2}], [datetime.now(UTC)], [b"\xff"]])
def test_arguments_are_json(backend: JobpipeBackend, wrong: list[Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="Unsupported"):
        tasks.note.enqueue(*wrong)
    with pytest.raises((TypeError, ValueError), match="Unsupported"):
        tasks.note.enqueue(wrong=wrong)
    with pytest.raises(BadInputError, match="payload"):
        tasks.note.enqueue(float("nan"))
    assert backend.pipe.page_sync().jobs == []
    result = tasks.note.enqueue((1, 2), b"text", key={"a": (None, True)})
    assert (result.args, result.kwargs) == ([[1, 2], "text"], {"key": {"a": [None, True]}})


def test_using_sets_queue_priority_and_time(backend: JobpipeBackend) -> None:
    later = timezone.now() + timedelta(hours=1)
    own = tasks.add.using(queue_name="mail", priority=-5, run_after=later)
    result = own.enqueue(1)
    job = backend.pipe.get_sync(result.id)
    assert (job.queue, job.priority, job.run_at, job.status) == ("mail", -5, later, "scheduled")
    assert result.status == TaskResultStatus.READY
    assert backend.get_result(result.id) == result
    assert backend.get_result(result.id).task == own
    sent = backend.pipe.get_sync(tasks.send.enqueue("ada").id)
    assert (sent.type, sent.queue, sent.priority) == (f"{tasks.__name__}.send", "mail", 7)


def test_the_first_are_those_of_the_highest_priority(backend: JobpipeBackend) -> None:
    results = [tasks.note.using(priority=each).enqueue(each) for each in (-100, 0, 100, 50)]
    pipe = backend.discover()

    async def scenario() -> None:
        async with pipe.running(workers=1):
            for result in results:
                await pipe.wait(result.id)

    asyncio.run(scenario())
    assert [args for args, _ in tasks.CALLS] == [(100,), (50,), (0,), (-100,)]


@pytest.mark.parametrize("priority", [-101, 101, 3.1])
def test_a_wrong_priority_is_refused(priority: Any) -> None:
    with pytest.raises(InvalidTask, match="priority must be a whole number between -100 and 100"):
        tasks.note.using(priority=priority)


def test_a_naive_time_is_refused_where_times_have_a_zone() -> None:
    with pytest.raises(InvalidTask, match="run_after must be an aware datetime"):
        tasks.note.using(run_after=datetime.now())


def test_times_are_naive_where_the_project_says_so(backend: JobpipeBackend) -> None:
    with override_settings(USE_TZ=False):
        at = datetime(2100, 1, 1, 12)
        result = tasks.note.using(run_after=at).enqueue()
        assert result.enqueued_at.tzinfo is None
        assert backend.get_result(result.id) == result
    assert backend.pipe.get_sync(result.id).run_at == datetime(2100, 1, 1, 11, tzinfo=UTC)


def test_a_queue_that_is_not_in_the_settings_is_refused() -> None:
    with pytest.raises(InvalidTask, match="Queue 'media' is not valid for backend"):
        tasks.note.using(queue_name="media")


def test_any_queue_will_do_if_none_is_named() -> None:
    setting = project.tasks_setting()
    setting["default"]["QUEUES"] = []
    with override_settings(TASKS=setting):
        result = tasks.note.using(queue_name="media").enqueue()
        assert task_backends["default"].pipe.get_sync(result.id).queue == "media"
        with pytest.raises(InvalidTask, match="queue_name must be 1 to 100 characters"):
            tasks.note.using(queue_name="no queue")


def test_a_function_that_no_worker_can_find_is_refused() -> None:
    def inner() -> None: ...

    for function in (inner, any, lambda: None):
        with pytest.raises(InvalidTask, match="Task function must be defined at a module level"):
            task()(function)


def test_a_function_of_the_main_module_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.add.func, "__module__", "__main__")
    with pytest.raises(
        InvalidTask, match=r"^a task must be in a module whose name .* got '__main__\.add': move it there$"
    ):
        task()(tasks.add.func)


def test_the_context_is_the_first_argument() -> None:
    with pytest.raises(InvalidTask, match="does not have a first argument of 'context'"):
        task(takes_context=True)(tasks.add.func)


def test_signals_are_sent_as_by_djangos_own_backends(
    backend: JobpipeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[tuple[Any, ...]] = []

    def receiver(signal: Any, sender: Any, task_result: Any, **_: Any) -> None:
        seen.append((signal, sender, task_result.id, str(task_result.status), task_result.attempts))

    signals = (task_enqueued, task_started, task_finished)
    for signal in signals:
        signal.connect(receiver)
    caplog.set_level(logging.DEBUG, project.NAME)
    try:
        for own, last, runs in (
            (tasks.note, "SUCCESSFUL", 1),
            (tasks.note_async, "SUCCESSFUL", 1),
            (tasks.fail, "FAILED", 1),
            (tasks.fail_async, "FAILED", 1),
            (tasks.return_no_json, "FAILED", 1),
            (tasks.fail_twice, "SUCCESSFUL", 3),
        ):
            seen.clear()
            caplog.clear()
            result = own.enqueue()
            work(backend, result)
            assert seen == [
                (task_enqueued, JobpipeBackend, result.id, "READY", 0),
                *((task_started, JobpipeBackend, result.id, "RUNNING", run) for run in range(1, runs + 1)),
                (task_finished, JobpipeBackend, result.id, last, runs),
            ]
            lines = [each for each in caplog.records if each.name == project.NAME]
            assert [each.levelname for each in lines] == [
                "DEBUG",
                *["INFO"] * runs,
                "INFO" if last == "SUCCESSFUL" else "ERROR",
            ]
            assert all(result.id in each.getMessage() for each in lines)
            if last == "FAILED":
                assert lines[-1].exc_info is not None
                assert lines[-1].exc_info[0] is not None
    finally:
        for signal in signals:
            signal.disconnect(receiver)


@pytest.fixture
def finished() -> Iterator[list[Any]]:
    """The results that `task_finished` was sent with."""
    seen: list[Any] = []

    def receiver(task_result: Any, **_: Any) -> None:
        seen.append(task_result)

    task_finished.connect(receiver)
    yield seen
    task_finished.disconnect(receiver)


def test_a_task_that_takes_too_long_is_reported(backend: JobpipeBackend, finished: list[Any]) -> None:
    result = tasks.take_too_long.enqueue()
    work(backend, result)
    assert (result.status, result.errors[0].exception_class.__name__) == ("FAILED", "DeadlineExceeded")
    assert [(each.id, each.status, len(each.errors)) for each in finished] == [(result.id, "FAILED", 1)]


def test_a_task_whose_worker_is_lost_is_reported(finished: list[Any]) -> None:
    with backend_with(lease=0.3) as backend:
        result = tasks.note.enqueue()
        claimed = backend.pipe.store.claim("lost", [tasks.note.module_path], 1, lease=0.001)
        assert len(claimed.claims) == 1
        work(backend, result)
        assert (result.status, result.worker_ids, result.attempts) == ("FAILED", ["lost"], 1)
        (error,) = result.errors
        assert (error.exception_class.__name__, error.traceback) == (
            "JobpipeError",
            "WorkerLost: worker lost",
        )
        assert [(each.id, each.status, each.errors) for each in finished] == [(result.id, "FAILED", [error])]
    assert tasks.CALLS == []


def test_what_ended_without_a_run_has_failed_without_an_error(backend: JobpipeBackend) -> None:
    result = tasks.note.enqueue()
    backend.pipe.cancel_sync(result.id)
    result.refresh()
    assert (result.status, result.errors, result.worker_ids) == (TaskResultStatus.FAILED, [], [])
    assert result.started_at is None
    assert result.finished_at is not None


def test_others_see_that_a_task_runs(backend: JobpipeBackend) -> None:
    result = tasks.look_at_itself.enqueue()
    work(backend, result)
    assert result.return_value == "RUNNING"


def test_a_task_is_validated_when_it_is_enqueued(backend: JobpipeBackend) -> None:
    setting = project.tasks_setting()
    setting["default"]["QUEUES"] = ["elsewhere"]
    with override_settings(TASKS=setting):
        own = tasks.note.using(queue_name="elsewhere")
    with pytest.raises(InvalidTask, match="Queue 'elsewhere' is not valid for backend"):
        own.enqueue()
    with pytest.raises(InvalidTask, match="Queue 'elsewhere' is not valid for backend"):
        asyncio.run(own.aenqueue())


def test_each_thread_has_the_same_jobs(backend: JobpipeBackend) -> None:
    ids: list[str] = []
    thread = threading.Thread(target=lambda: ids.append(tasks.add.enqueue(1).id))
    thread.start()
    thread.join()
    assert backend.get_result(ids[0]).args == [1]


def test_checks(backend: JobpipeBackend) -> None:
    assert [each.id for each in backend.check()] == ["jobpipe.W002"]
    with backend_with(store="sqlite:///jobs.db") as other:
        assert list(other.check()) == []
        with override_settings(INSTALLED_APPS=[]):
            assert [each.id for each in other.check()] == ["jobpipe.W001"]


def test_a_module_of_tasks_that_cannot_be_imported_is_told_by_the_checks() -> None:
    with project.app_with_a_typo("typo"), backend_with(store="sqlite:///jobs.db") as backend:
        (error,) = backend.check()
    assert (error.id, error.is_serious()) == ("jobpipe.E001", True)
    assert error.msg == (
        "typo.tasks cannot be imported: TypeError: @task_options of typo.tasks.send: "
        "unknown option 'max_retires'; did you mean 'max_retries'?"
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stor": "memory://"}, r"stor is not a known option; did you mean 'store'\?"),
        ({"workers": -1}, "workers must be a whole number from 0 to 10000, got '-1'"),
        ({"max_retries": "many"}, "max_retries must be"),
        ({"rate": "fast"}, "rate must be"),
        ({"concurrency": 0}, "concurrency must be a whole number >= 1, got 0"),
        ({"priority": 1}, "priority is not a known option"),
        ({"on_duplicate": "keep"}, "on_duplicate requires unique"),
        ({"queue_limits": {"mail": {}}}, "rate or concurrency is required"),
        ({"queue_limits": 5}, "queue_limits must be"),
    ],
)
def test_wrong_options_of_a_backend_are_refused(options: dict[str, Any], text: str) -> None:
    with (
        override_settings(TASKS=project.tasks_setting(**options)),
        pytest.raises(ImproperlyConfigured, match=rf"^TASKS\['default'\] is wrong: {text}"),
    ):
        _ = task_backends["default"]


def test_a_wrong_name_of_a_queue_is_refused() -> None:
    setting = project.tasks_setting()
    setting["default"]["QUEUES"] = ["a b"]
    with (
        override_settings(TASKS=setting),
        pytest.raises(ImproperlyConfigured, match="QUEUES must be 1 to 100"),
    ):
        _ = task_backends["default"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_retry": 1}, "unknown option 'max_retry'; did you mean 'max_retries'"),
        ({"queue": "mail"}, r"'queue' is no option here: write @task\(queue_name=…\)"),
        ({"priority": 1}, r"'priority' is no option here: write @task\(priority=…\)"),
        ({"max_retries": -1}, "max_retries must be"),
        ({"expires_in": -1}, "expires_in must be"),
        ({"max_wait": 1}, "max_wait requires unique"),
        ({"key": 5}, "key must be a function"),
    ],
)
def test_wrong_options_of_a_task_are_refused(options: dict[str, Any], text: str) -> None:
    path = rf"^@task_options of {tasks.__name__}\.add: "
    with pytest.raises((TypeError, ValueError), match=path + text):
        task_options(**options)(tasks.add.func)


def test_options_of_a_task_go_below_the_task() -> None:
    with pytest.raises(TypeError, match=r"@task_options goes below @task\(\)"):
        task_options(max_retries=1)(tasks.note)


def test_options_of_a_task_win_over_those_of_the_backend() -> None:
    with backend_with(
        max_retries=2, deadline=9, tags=["shop"], queue_limits={"mail": {"rate": "50/s"}}
    ) as backend:
        pipe = backend.pipe
        own, other = (pipe.get_sync(each.enqueue().id) for each in (tasks.fail_twice, tasks.note))
        assert (own.max_retries, own.deadline, own.tags) == (3, 9.0, ("shop",))
        assert (other.max_retries, other.deadline, other.tags) == (2, 9.0, ("shop",))
        assert [(each.queue, each.rate) for each in pipe.limits_sync()] == [("mail", "50/s")]
    with backend_with() as backend:
        assert backend.pipe.get_sync(tasks.note.enqueue().id).max_retries == 0


def test_limits_of_a_task(backend: JobpipeBackend) -> None:
    result = tasks.limited.enqueue(5)
    (limit,) = backend.pipe.limits_sync()
    assert (limit.type, limit.rate, limit.concurrency, limit.is_keyed) == (
        f"{tasks.__name__}.limited",
        "5/s",
        3,
        True,
    )
    work(backend, result)
    assert result.return_value == 5


def test_a_task_has_every_option_of_a_job_type() -> None:
    assert TypeOptions.__annotations__.keys() - {"queue", "priority"} <= TaskOptions.__annotations__.keys()


def test_arguments_may_be_checked_and_logs_be_off(backend: JobpipeBackend) -> None:
    with pytest.raises(BadInputError, match="number must be positive"):
        tasks.positive.enqueue(-1)
    result = tasks.positive.enqueue(1)
    work(backend, result)
    assert result.return_value == 1
    assert backend.pipe.logs_sync(result.id).lines == []


def test_a_unique_task_waits_once(backend: JobpipeBackend) -> None:
    first, second, third = tasks.once.enqueue(1), tasks.once.enqueue(1), tasks.once.enqueue(2)
    assert first == second
    assert third.id != first.id
    work(backend, first, third)
    assert tasks.once.enqueue(1).id != first.id

    old = tasks.newest.enqueue(1, word="old")
    new = tasks.newest.enqueue(1, word="new")
    job = backend.pipe.get_sync(new.id)
    assert (job.unique, job.tags) == ("once-1", ("a",))
    assert job.expires_at is not None
    assert backend.pipe.page_sync(type=job.type).jobs[0].id == new.id
    work(backend, new)
    assert new.return_value == "new"
    assert old.kwargs == {"word": "old"}
