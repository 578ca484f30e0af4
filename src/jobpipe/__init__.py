"""A background job service: jobs enqueued over HTTP, Python or the command line, run with retries, never lost."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .app import Jobpipe
    from .client.client import Client
    from .errors import (
        BadInputError,
        Cancel,
        DuplicateError,
        Fail,
        ForbiddenError,
        JobConflictError,
        JobNotFoundError,
        JobpipeError,
        LeaseLostError,
        MemoryExceeded,
        PayloadTooLargeError,
        ProcessDied,
        QueueFullError,
        Retry,
        ScheduleNotFoundError,
        SettingsError,
        SignalRefusedError,
        SignalTimeout,
        Snooze,
        StepResultError,
        StoppingError,
        StoreAwayError,
        StoreBusyError,
        StoreError,
        StoreRefusedError,
        TooManyNamesError,
        TooManyScheduledError,
        UnauthorizedError,
        UnreachableError,
        WrongStatusError,
    )
    from .gateway.explain import Explanation, Reason
    from .gateway.limits import LimitInfo, Rate, RateLimited
    from .gateway.timetable import ScheduleInfo, ScheduleRequest
    from .gateway.views import JobPage, QueueInfo, Stats
    from .jobtypes.current import CurrentJob, JobLogFilter, current_job
    from .jobtypes.jobtype import JobType
    from .model.counts import FailureGroup, Failures
    from .model.durable import SignalReceipt
    from .model.job import Attempt, Job, JobError, JobStatus, OnDuplicate, Progress, StepInfo
    from .model.logs import JobLogs, LogLine
    from .model.request import JobRequest
    from .settings import Settings
    from .stores import open_store
    from .stores.base import Missed, Receipt

__all__ = [
    "Attempt",
    "BadInputError",
    "Cancel",
    "Client",
    "CurrentJob",
    "DuplicateError",
    "Explanation",
    "Fail",
    "FailureGroup",
    "Failures",
    "ForbiddenError",
    "Job",
    "JobConflictError",
    "JobError",
    "JobLogFilter",
    "JobLogs",
    "JobNotFoundError",
    "JobPage",
    "JobRequest",
    "JobStatus",
    "JobType",
    "Jobpipe",
    "JobpipeError",
    "LeaseLostError",
    "LimitInfo",
    "LogLine",
    "MemoryExceeded",
    "Missed",
    "OnDuplicate",
    "PayloadTooLargeError",
    "ProcessDied",
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
    "SignalReceipt",
    "SignalRefusedError",
    "SignalTimeout",
    "Snooze",
    "Stats",
    "StepInfo",
    "StepResultError",
    "StoppingError",
    "StoreAwayError",
    "StoreBusyError",
    "StoreError",
    "StoreRefusedError",
    "TooManyNamesError",
    "TooManyScheduledError",
    "UnauthorizedError",
    "UnreachableError",
    "WrongStatusError",
    "current_job",
    "open_store",
]

_MODULES = {
    "model.durable": ("SignalReceipt",),
    "app": ("Jobpipe",),
    "client.client": ("Client",),
    "jobtypes.current": (
        "CurrentJob",
        "JobLogFilter",
        "current_job",
    ),
    "errors": (
        "StepResultError",
        "SignalTimeout",
        "SignalRefusedError",
        "BadInputError",
        "Cancel",
        "DuplicateError",
        "Fail",
        "ForbiddenError",
        "JobConflictError",
        "JobNotFoundError",
        "JobpipeError",
        "LeaseLostError",
        "MemoryExceeded",
        "PayloadTooLargeError",
        "ProcessDied",
        "QueueFullError",
        "Retry",
        "ScheduleNotFoundError",
        "SettingsError",
        "Snooze",
        "StoppingError",
        "StoreAwayError",
        "StoreBusyError",
        "StoreError",
        "StoreRefusedError",
        "TooManyNamesError",
        "TooManyScheduledError",
        "UnauthorizedError",
        "UnreachableError",
        "WrongStatusError",
    ),
    "gateway.explain": (
        "Explanation",
        "Reason",
    ),
    "jobtypes.jobtype": ("JobType",),
    "model.job": (
        "StepInfo",
        "Attempt",
        "Job",
        "JobError",
        "JobStatus",
        "OnDuplicate",
        "Progress",
    ),
    "model.counts": (
        "FailureGroup",
        "Failures",
    ),
    "gateway.limits": (
        "LimitInfo",
        "Rate",
        "RateLimited",
    ),
    "model.logs": (
        "JobLogs",
        "LogLine",
    ),
    "model.request": ("JobRequest",),
    "settings": ("Settings",),
    "stores": ("open_store",),
    "stores.base": (
        "Missed",
        "Receipt",
    ),
    "gateway.timetable": (
        "ScheduleInfo",
        "ScheduleRequest",
    ),
    "gateway.views": (
        "JobPage",
        "QueueInfo",
        "Stats",
    ),
}
"""Where each public name is. Why not imported above: `jobpipe --help` needs none of them."""


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("rate-envelope-queue")
    for module, names in _MODULES.items():
        if name in names:
            try:
                return getattr(import_module(f".{module}", __name__), name)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith(__name__):
                    raise
                extra = "client" if name == "Client" else "service"
                missing = error.name
            raise ImportError(
                f"{name} needs {missing}: pip install 'rate-envelope-queue[{extra}]'", name=missing
            )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
