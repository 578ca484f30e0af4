"""What a worker does with a task's job: calls the function, sends Django's signals, and closes old connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.utils import timezone

from ...app import Jobpipe
from ...jobtypes.current import current_job
from ...model.job import Job, Move
from ...model.lease import Claim
from ...model.outcome import Hopeless, outcome_of
from .framework import (
    Task,
    TaskContext,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from .logs import told_by_django
from .options import NO_ARGUMENTS, Call
from .results import add_error, enqueued_at, new_result, result_of, task_as

_ENDS = {Move.FAIL, Move.CANCEL}
"""What the task does not run again after."""
_FROM_OUTSIDE = {"WorkerLost", "DeadlineExceeded", "MemoryExceeded", "ProcessDied"}
"""Errors that end a run without the function's knowledge."""


def handler_of(task: Task, alias: str, pipe: Jobpipe, sender: type) -> Callable[[Call], Any]:
    """The handler of the task's job type: a coroutine if the task is one."""
    run = _Run(task, alias, pipe, sender)
    return run.call_async if iscoroutinefunction(task.func) else run.call


def report_failure(job: Job, task: Task, alias: str, sender: type) -> None:
    """Send the signal for a task that has failed where no `except` could."""
    if job.error is None or job.error.type not in _FROM_OUTSIDE:
        return
    result = result_of(job, task, alias)
    if not job.history or job.history[-1].error != job.error:  # the run is not in the store yet
        add_error(result, job.error)
    task_finished.send_robust(sender, task_result=result)
    close_old_connections()


class _Run:
    """The runs of one task. Signals are sent as Django's own backends do, those of a failure within its `except`.

    Why robust: an error of a receiver, which Django logs, must not fail a task that has succeeded, or run it again.
    """

    def __init__(self, task: Task, alias: str, pipe: Jobpipe, sender: type) -> None:
        self._task = task
        self._alias = alias
        self._pipe = pipe
        self._sender = sender

    def call(self, call: Call = NO_ARGUMENTS) -> Any:
        result = self._begin(call)
        try:
            value = _normalized(self._task.func(*self._args(result), **result.kwargs))
        except BaseException as error:
            self._failed(result, error)
            raise
        return self._succeeded(result, value)

    async def call_async(self, call: Call = NO_ARGUMENTS) -> Any:
        # Why in a thread: receivers of signals may use the database. It is the one in which `aget` and its kin run.
        result = await sync_to_async(self._begin)(call)
        try:
            value = _normalized(await self._task.func(*self._args(result), **result.kwargs))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            await sync_to_async(self._failed)(result, error)
            raise
        return await sync_to_async(self._succeeded)(result, value)

    def _args(self, result: TaskResult) -> list[Any]:
        context = [TaskContext(task_result=result)] if self._task.takes_context else []
        return [*context, *result.args]

    def _begin(self, call: Call) -> TaskResult:
        close_old_connections()
        job = current_job()
        if job.attempts > 1:
            result = result_of(self._pipe.get_sync(job.id), self._task, self._alias)
        else:
            task = task_as(self._task, self._alias, call, queue=job.queue, priority=job.priority)
            result = new_result(task, self._alias, job.id, call.args, call.kwargs)
        now = timezone.now()
        _set(
            result,
            status=TaskResultStatus.RUNNING,
            enqueued_at=enqueued_at(job.id, job.created_at),
            started_at=result.started_at or now,
            last_attempted_at=now,
        )
        result.worker_ids.append(job.worker)
        task_started.send_robust(self._sender, task_result=result)
        return result

    def _succeeded(self, result: TaskResult, value: Any) -> Any:
        _set(result, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now(), _return_value=value)
        task_finished.send_robust(self._sender, task_result=result)
        close_old_connections()
        return value

    def _failed(self, result: TaskResult, error: BaseException) -> None:
        job, job_type = current_job(), self._pipe.types[self._task.module_path]
        # Why a cast: it has all of the claim that counts for the outcome.
        outcome = outcome_of(error, cast(Claim, job), job_type.backoff, job_type.is_final)
        if outcome.error is not None:
            add_error(result, outcome.error)
        if outcome.move in _ENDS:
            _set(result, status=TaskResultStatus.FAILED, finished_at=timezone.now())
            task_finished.send_robust(self._sender, task_result=result)
            told_by_django(error)
        close_old_connections()


def _normalized(value: Any) -> Any:
    """What the task returned, as JSON; the next run would return the same, so an error of it is final."""
    try:
        return normalize_json(value)
    except (TypeError, ValueError) as error:
        raise Hopeless from error


def _set(result: TaskResult, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(result, name, value)
