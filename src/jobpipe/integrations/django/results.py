"""From a job to Django's TaskResult: status, times, errors and workers, as the store has them."""

from __future__ import annotations

import builtins
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import RFC_4122, UUID

import msgspec
from django.conf import settings
from django.utils import timezone

from ...model.job import Job, JobError, JobStatus
from .framework import Task, TaskError, TaskResult, TaskResultStatus
from .options import NO_ARGUMENTS, Call

_STATUSES = {
    JobStatus.SCHEDULED: TaskResultStatus.READY,
    JobStatus.WAITING: TaskResultStatus.READY,  # Why not RUNNING: no worker has it, as between two runs
    JobStatus.QUEUED: TaskResultStatus.READY,
    JobStatus.RUNNING: TaskResultStatus.RUNNING,
    JobStatus.DONE: TaskResultStatus.SUCCESSFUL,
    JobStatus.FAILED: TaskResultStatus.FAILED,
    JobStatus.CANCELLED: TaskResultStatus.FAILED,
    JobStatus.EXPIRED: TaskResultStatus.FAILED,
}


def new_result(task: Task, alias: str, id: str, args: Any, kwargs: Any) -> TaskResult:
    """Of a task that is about to be enqueued; TypeError or ValueError for arguments that are not JSON."""
    return TaskResult(
        task=task,
        id=id,
        status=TaskResultStatus.READY,
        enqueued_at=enqueued_at(id),
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=args,
        kwargs=kwargs,
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def result_of(job: Job, task: Task, alias: str) -> TaskResult:
    """Of a job in the store; msgspec.ValidationError if its payload is not the call of a task."""
    call = NO_ARGUMENTS if job.payload is None else msgspec.convert(job.payload, Call)
    history = job.history
    started_at = history[0].began_at if history else job.started_at
    result = TaskResult(
        task=task_as(task, alias, call, queue=job.queue, priority=job.priority),
        id=job.id,
        status=_STATUSES[job.status],
        enqueued_at=enqueued_at(job.id, job.created_at),
        started_at=_local(started_at),
        last_attempted_at=_local(job.started_at or (history[-1].began_at if history else None)),
        finished_at=_local(job.finished_at),
        args=call.args,
        kwargs=call.kwargs,
        backend=alias,
        errors=[_error_of(each.error) for each in history if each.error is not None],
        worker_ids=[each.worker for each in history],
    )
    if job.status is JobStatus.DONE:
        object.__setattr__(result, "_return_value", job.result)
    return result


def task_as(task: Task, alias: str, call: Call, *, queue: str, priority: int) -> Task:
    """The task as it was enqueued."""
    run_after = call.run_after
    if run_after is not None and settings.USE_TZ and run_after.tzinfo is None:
        run_after = timezone.make_aware(run_after)
    return replace(task, priority=priority, queue_name=queue, run_after=run_after, backend=alias)


def enqueued_at(id: str, created_at: datetime | None = None) -> datetime | None:
    """When the task was enqueued. Why by its id, which is a UUID with the time: whoever enqueued it has the same value."""
    try:
        uuid = UUID(id)
    except ValueError:
        return _local(created_at)
    if uuid.variant != RFC_4122 or uuid.version != 7:
        return _local(created_at)
    return _local(datetime.fromtimestamp((uuid.int >> 80) / 1000, UTC))


def add_error(result: TaskResult, error: JobError) -> None:
    """Add the error of the run that has just ended."""
    result.errors.append(_error_of(error))


def _local(at: datetime | None) -> datetime | None:
    """As Django has times: aware, unless the project says otherwise."""
    return at if at is None or settings.USE_TZ else timezone.make_naive(at)


def _error_of(error: JobError) -> TaskError:
    trace = error.traceback or f"{error.type}: {error.message}"
    return TaskError(exception_class_path=_class_path(error), traceback=trace)


def _class_path(error: JobError) -> str:
    """The path of the class. Why from the traceback: its last lines have the module, the stored error has only the name."""
    pattern = rf"^((?:\w+\.)*){re.escape(error.type)}(?=:|$)"
    found = re.findall(pattern, error.traceback or "", re.MULTILINE)
    if found and found[-1]:
        return f"{found[-1]}{error.type}"
    return f"builtins.{error.type}" if hasattr(builtins, error.type) else "jobpipe.JobpipeError"
