"""A Django project in this process, for the cases beside it: it is set up when this is imported.

Why the cases are run in processes of their own: Django is set up once in a process, and other tests do that, too.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
from django.conf import settings

NAME = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
"""What Django's tasks are called, and their logger."""
FOLDER = Path(tempfile.mkdtemp(prefix="django-cases-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
DATABASE = FOLDER / "project.db"
APPS = ["jobpipe.integrations.django", *([] if NAME == "django.tasks" else [NAME])]
QUEUES = ["default", "mail"]


def tasks_setting(**options: Any) -> dict[str, Any]:
    """TASKS with one backend of these OPTIONS; its jobs are in memory unless they say otherwise."""
    backend = "jobpipe.integrations.django.JobpipeBackend"
    return {"default": {"BACKEND": backend, "QUEUES": QUEUES, "OPTIONS": {"store": "memory://", **options}}}


def _databases() -> dict[str, Any]:
    sqlite = {"ENGINE": "django.db.backends.sqlite3", "NAME": DATABASE}
    other = {**sqlite, "NAME": FOLDER / "other.db"}
    found: dict[str, Any] = {
        "default": {**sqlite, "OPTIONS": {"transaction_mode": "IMMEDIATE"}},
        "other": other,
    }
    if url := os.environ.get("TEST_DJANGO_POSTGRES"):
        from jobpipe.stores.postgres.address import Address

        parts = Address.parse(url).parameters
        found["postgres"] = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts["dbname"],
            "USER": parts["user"],
            "PASSWORD": parts.get("password", ""),
            "HOST": parts.get("host", ""),
            "PORT": parts.get("port", ""),
        }
    return found


settings.configure(
    INSTALLED_APPS=APPS, DATABASES=_databases(), TASKS=tasks_setting(), USE_TZ=True, TIME_ZONE="Europe/Berlin"
)
django.setup()

from django.db import connections  # noqa: E402
from django.test import override_settings  # noqa: E402

from jobpipe.integrations.django import JobpipeBackend  # noqa: E402
from jobpipe.integrations.django.framework import TaskResult, task_backends  # noqa: E402

from ....support.waiting import run  # noqa: E402


@contextmanager
def backend_with(**options: Any) -> Iterator[JobpipeBackend]:
    """A backend with these OPTIONS, and jobs of its own."""
    with override_settings(TASKS=tasks_setting(**options)):
        backend = task_backends["default"]
        assert isinstance(backend, JobpipeBackend)
        try:
            yield backend
        finally:
            backend.pipe.close()
            connections.close_all()


def work(backend: JobpipeBackend, *results: TaskResult) -> None:
    """Run tasks in this process until these have ended, and bring their results up to date."""
    pipe = backend.discover()

    async def until_done() -> None:
        async with pipe.running(workers=2):
            for result in results:
                assert (await pipe.wait(result.id, timeout=50)).is_finished

    run(until_done())
    for result in results:
        result.refresh()


_TYPO = """
from jobpipe.integrations.django import task_options

@task_options(max_retires=2)
def send(): ...
"""


@contextmanager
def app_with_a_typo(name: str) -> Iterator[None]:
    """An app of that name in the project, whose module `tasks` cannot be imported."""
    (FOLDER / name).mkdir()
    (FOLDER / name / "__init__.py").touch()
    (FOLDER / name / "tasks.py").write_text(_TYPO, encoding="utf-8")
    sys.path.insert(0, str(FOLDER))
    try:
        with override_settings(INSTALLED_APPS=[*APPS, name]):
            yield
    finally:
        sys.path.remove(str(FOLDER))
