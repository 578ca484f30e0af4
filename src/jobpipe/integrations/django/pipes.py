"""Pipes: the pipe of each backend of TASKS, one for the process, however many threads have a backend of their own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django.core.signals import setting_changed
from django.utils.module_loading import autodiscover_modules

from ...app import Jobpipe
from ...errors import BadInputError
from ...jobtypes.terms import TypeOptions
from ...model.job import Job
from .framework import Task
from .options import BackendOptions, OptionsOfTask
from .running import handler_of, report_failure


class TaskPipe:
    """The pipe of one backend, and the tasks that are job types of it."""

    def __init__(self, alias: str, options: Mapping[str, Any], sender: type) -> None:
        self._alias = alias
        self._options = BackendOptions(options)
        self._sender = sender
        self.pipe = Jobpipe(**self._options.settings)
        for queue, limits in self._options.queue_limits.items():
            self.pipe.queue(queue, **limits)
        self.pipe.on_failure(self._report_failure)
        self._adding = threading.Lock()
        self._tasks: dict[str, Task] = {}
        self._of_tasks: dict[str, OptionsOfTask] = {}
        self.foreign: set[str] = set()
        """Databases of Django's, by alias, that were found not to be the store's."""

    def add(self, task: Task) -> OptionsOfTask:
        """Make the task a job type, if it is none; its options. BadInputError if it can be none."""
        path = task.module_path
        if path not in self._tasks:
            if path.startswith("_"):  # above all __main__, which is another module in each process
                raise BadInputError(
                    "a task",
                    f"must be in a module whose name begins with a letter, got {path!r}: move it there",
                )
            with self._adding:
                if path not in self._tasks:
                    options = self._options.of(task.func)
                    handler = handler_of(task, self._alias, self.pipe, self._sender)
                    # Why its queue and priority: schedules and HTTP callers need not name them.
                    terms: TypeOptions = {
                        **options.of_type,
                        "queue": task.queue_name,
                        "priority": task.priority,
                    }
                    self.pipe.job(path, **terms)(handler)
                    self._of_tasks[path] = options
                    self._tasks[path] = task
        return self._of_tasks[path]

    def get(self, path: str) -> Task | None:
        """The task that the type of a job names. Why no import by its name: what is stored is data."""
        if path not in self._tasks:
            self.discover()
        return self._tasks.get(path)

    def _report_failure(self, job: Job) -> None:
        if job.type in self._tasks:
            report_failure(job, self._tasks[job.type], self._alias, self._sender)

    def discover(self) -> None:
        """Make every task of the project a job type: those in the module `tasks` of an app, and in any module that is loaded."""
        autodiscover_modules("tasks")
        for module in list(sys.modules.values()):
            # Why by type(): a lazy object would be evaluated by isinstance.
            for value in list(getattr(module, "__dict__", {}).values()):
                if issubclass(type(value), Task):
                    with suppress(BadInputError):  # a task of another backend, which can be no job
                        self.add(value)


_pipes: dict[tuple[str, str], TaskPipe] = {}
_opening = threading.Lock()


def task_pipe(alias: str, options: Mapping[str, Any], sender: type) -> TaskPipe:
    """The one of this process for a backend with these options."""
    key = (alias, repr(options))
    with _opening:
        if key not in _pipes:
            _pipes[key] = TaskPipe(alias, options, sender)
        return _pipes[key]


def close_pipes(*, setting: str, **_: Any) -> None:
    """Forget all of them when a test changes the backends."""
    if setting == "TASKS":
        with _opening:
            for each in _pipes.values():
                each.pipe.close()
            _pipes.clear()


setting_changed.connect(close_pipes)
