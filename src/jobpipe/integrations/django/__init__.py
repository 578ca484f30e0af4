"""A backend of Django's tasks: `@task` functions as jobs, with retries, limits, a dashboard and `manage.py jobpipe`.

It needs Django 6.0, or the package django-tasks on an older Django.
"""

from .backend import JobpipeBackend
from .options import task_options

__all__ = ["JobpipeBackend", "task_options"]
