"""A background job service: jobs put in over HTTP, Python or the command line, run with retries, never lost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .app import Jobpipe
    from .current import CurrentJob, current_job
    from .errors import (
        BadInputError,
        Cancel,
        JobConflictError,
        JobNotFoundError,
        JobpipeError,
        LeaseLostError,
        PayloadTooLargeError,
        QueueFullError,
        Retry,
        ScheduleNotFoundError,
        SettingsError,
        Snooze,
        StoppingError,
        StoreAwayError,
        StoreError,
        StoreRefusedError,
        TooManyNamesError,
        TooManyScheduledError,
        WrongStatusError,
    )
    from .explain import Explanation, Reason
    from .handler import JobType
    from .job import Attempt, Job, JobError, JobStatus, Progress
    from .limits import LimitInfo, Rate, RateLimited
    from .request import JobRequest
    from .settings import Settings
    from .stores import open_store
    from .stores.base import Missed, Receipt
    from .timetable import ScheduleInfo, ScheduleRequest
    from .views import JobPage, QueueInfo, Stats

__all__ = [
    "Attempt",
    "BadInputError",
    "Cancel",
    "CurrentJob",
    "Explanation",
    "Job",
    "JobConflictError",
    "JobError",
    "JobNotFoundError",
    "JobPage",
    "JobRequest",
    "JobStatus",
    "JobType",
    "Jobpipe",
    "JobpipeError",
    "LeaseLostError",
    "LimitInfo",
    "Missed",
    "PayloadTooLargeError",
    "Progress",
    "QueueFullError",
    "QueueInfo",
    "Rate",
    "RateLimited",
    "Reason",
    "Receipt",
    "Retry",
    "ScheduleInfo",
    "ScheduleNotFoundError",
    "ScheduleRequest",
    "Settings",
    "SettingsError",
    "Snooze",
    "Stats",
    "StoppingError",
    "StoreAwayError",
    "StoreError",
    "StoreRefusedError",
    "TooManyNamesError",
    "TooManyScheduledError",
    "WrongStatusError",
    "current_job",
    "open_store",
]

_MODULES = {
    "app": ("Jobpipe",),
    "current": (
        "CurrentJob",
        "current_job",
    ),
    "errors": (
        "BadInputError",
        "Cancel",
        "JobConflictError",
        "JobNotFoundError",
        "JobpipeError",
        "LeaseLostError",
        "PayloadTooLargeError",
        "QueueFullError",
        "Retry",
        "ScheduleNotFoundError",
        "SettingsError",
        "Snooze",
        "StoppingError",
        "StoreAwayError",
        "StoreError",
        "StoreRefusedError",
        "TooManyNamesError",
        "TooManyScheduledError",
        "WrongStatusError",
    ),
    "explain": (
        "Explanation",
        "Reason",
    ),
    "handler": ("JobType",),
    "job": (
        "Attempt",
        "Job",
        "JobError",
        "JobStatus",
        "Progress",
    ),
    "limits": (
        "LimitInfo",
        "Rate",
        "RateLimited",
    ),
    "request": ("JobRequest",),
    "settings": ("Settings",),
    "stores": ("open_store",),
    "stores.base": (
        "Missed",
        "Receipt",
    ),
    "timetable": (
        "ScheduleInfo",
        "ScheduleRequest",
    ),
    "views": (
        "JobPage",
        "QueueInfo",
        "Stats",
    ),
}
"""Where each public name is. Why not imported above: `jobpipe --help` needs none of them."""


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
