"""`jobpipe.integrations.django.app:pipe`: what each process of `manage.py jobpipe worker` loads.

Django is set up in that process, and not in the supervisor: one that is started anew, or reloaded, sees the project as it
is then.
"""

from __future__ import annotations

import os
from typing import Any

import django
from django.core.exceptions import ImproperlyConfigured

from ...app import Jobpipe
from ...errors import SettingsError
from ...process.loading import AppBrokenError
from .blame import module_at_fault

SPEC = f"{__name__}:pipe"
VARIABLE = "DJANGO_JOBPIPE_BACKEND"
"""Names the backend in TASKS, where there are several."""


def __getattr__(name: str) -> Any:
    """The pipe of the backend, with all tasks of the project. Why not made above: nothing is done by an import."""
    if name != "pipe":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    project = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    try:
        django.setup()
        return chosen_backend(os.environ.get(VARIABLE)).discover()
    except (ImproperlyConfigured, SettingsError) as error:
        raise SettingsError("DJANGO_SETTINGS_MODULE", f"{project!r}: {error}") from None
    except (Exception, SystemExit) as error:
        raise AppBrokenError(module_at_fault(error, project), error) from error


def chosen_backend(alias: str | None) -> Any:
    """The backend in TASKS of that alias, or the only one; SettingsError."""
    from .backend import JobpipeBackend  # Why here: only a project that is set up has one
    from .framework import task_backends

    found = [name for name in task_backends if isinstance(task_backends[name], JobpipeBackend)]
    if alias is None:
        alias = found[0] if len(found) == 1 else "default"
    if alias in found:
        return task_backends[alias]
    if not found:
        raise SettingsError("TASKS", "has no backend jobpipe.integrations.django.JobpipeBackend")
    raise SettingsError("--backend", f"must be one of {', '.join(map(repr, found))}, got {alias!r}")


pipe: Jobpipe
