"""JobpipeBackend: Django's tasks, stored as jobs.

Enqueueing is part of the open transaction where that is in the store's own database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec
from django.apps import apps
from django.core import checks
from django.db import connections, transaction
from django.utils import timezone

from ...app import Jobpipe
from ...errors import BadInputError, JobNotFoundError, JobpipeError, StoreAwayError
from ...model.ids import check_name, new_id
from ...model.newjob import Receipt
from .blame import module_at_fault
from .framework import (
    BaseTaskBackend,
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    task_enqueued,
)
from .options import Call
from .pipes import task_pipe
from .results import new_result, result_of

_APP = "jobpipe.integrations.django"


class JobpipeBackend(BaseTaskBackend):  # type: ignore[misc] # Why: Django is not typed
    """A backend for TASKS. OPTIONS are settings of `Jobpipe` (`store` above all), options of tasks, and `queue_limits`."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.enqueue_on_commit = bool(params.get("ENQUEUE_ON_COMMIT", False))
        try:
            for name in self.queues:
                check_name("QUEUES", name)
            self._pipe = task_pipe(alias, self.options, type(self))
        except (JobpipeError, TypeError) as error:
            raise InvalidTaskBackend(f"TASKS[{alias!r}] is wrong: {error}") from None

    @property
    def pipe(self) -> Jobpipe:
        """Its jobs, for all that Django's tasks have no word for: `cancel`, `page`, `explain` and so on."""
        return self._pipe.pipe

    def discover(self) -> Jobpipe:
        """The pipe, with all tasks of the project as its job types: what a worker runs."""
        self._pipe.discover()
        return self.pipe

    def validate_task(self, task: Task) -> None:
        """InvalidTask if it cannot be a job."""
        super().validate_task(task)
        try:
            check_name("queue_name", task.queue_name)
            self._pipe.add(task)
        except BadInputError as error:
            raise InvalidTask(str(error)) from error

    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Enqueue the task; in the open transaction, if that is in the store's database."""
        self.validate_task(task)
        result = new_result(task, self.alias, new_id(), args, kwargs)
        others = []
        for database in _open_transactions():
            if database.alias not in self._pipe.foreign:
                try:
                    return self._insert(result, database.connection)
                except BadInputError as error:
                    if error.field != "connection":
                        raise
                    self._pipe.foreign.add(database.alias)
            others.append(database.alias)
        if self.enqueue_on_commit and others:
            transaction.on_commit(partial(self._insert, result), using=others[0])
            return result
        return self._insert(result)

    def get_result(self, result_id: str) -> TaskResult:
        """The task as it is in the store; TaskResultDoesNotExist."""
        try:
            job = self.pipe.get_sync(result_id)
            task = self._pipe.get(job.type)
            if task is not None:
                return result_of(job, task, self.alias)
        except (JobNotFoundError, BadInputError, msgspec.ValidationError):
            pass
        raise TaskResultDoesNotExist(result_id)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """What is likely not meant."""
        yield from super().check(**kwargs)
        if not apps.is_installed(_APP):
            yield checks.Warning(
                "The command `manage.py jobpipe` is missing.",
                hint=f"Add {_APP!r} to INSTALLED_APPS.",
                id="jobpipe.W001",
            )
        if self.pipe.settings.store.startswith("memory:"):
            yield checks.Warning(
                f"The store of TASKS[{self.alias!r}] is in the memory of each process: no worker sees its tasks.",
                hint="Set OPTIONS['store'] to a URL such as sqlite:///jobs.db or postgresql://…",
                id="jobpipe.W002",
            )
        try:
            self.discover()
        except Exception as error:
            yield checks.Error(
                f"{module_at_fault(error, 'The project')} cannot be imported: {type(error).__name__}: {error}",
                hint="A worker imports the module `tasks` of every app.",
                id="jobpipe.E001",
            )

    def _insert(self, result: TaskResult, connection: Any = None) -> TaskResult:
        task = result.task
        call = Call(args=result.args, kwargs=result.kwargs, run_after=task.run_after)
        options = self._pipe.add(task).of_job(task.module_path, call)
        if connection is not None:
            self._open_within()
        run_at = task.run_after
        if run_at is not None and run_at.tzinfo is None:
            run_at = timezone.make_aware(run_at)
        receipt = self.pipe.enqueue_sync(
            task.module_path,
            call,
            id=result.id,
            queue=task.queue_name,
            priority=task.priority,
            run_at=run_at,
            connection=connection,
            **options,
        )
        if not receipt.is_new:
            return self._duplicate(result, receipt)
        task_enqueued.send(type(self), task_result=result)
        return result

    def _open_within(self) -> None:
        """Open the store, in an open transaction; that may be what keeps its tables from being made."""
        try:
            _ = self.pipe.store
        except StoreAwayError as error:
            if "locked" not in str(error):
                raise
            raise StoreAwayError(
                f"{error}: its tables are missing or old, and cannot be made while a transaction is open; "
                "run `manage.py jobpipe migrate` first"
            ) from error

    def _duplicate(self, result: TaskResult, receipt: Receipt) -> TaskResult:
        """The result of the task that waits already under the same unique name."""
        try:
            return self.get_result(receipt.id)
        except TaskResultDoesNotExist:  # it is of this very transaction
            return new_result(result.task, self.alias, receipt.id, result.args, result.kwargs)


def _open_transactions() -> Iterator[Any]:
    """Django's connections that are in a transaction in this thread."""
    for connection in connections.all(initialized_only=True):
        if connection.connection is not None and (connection.in_atomic_block or not connection.autocommit):
            yield connection
