"""What a project says of its tasks beside Django's own: in OPTIONS for all, with `@task_options` for one.

Those of a job type are named as in `@pipe.job`, those of a job as in `enqueue`. `key`, `check` and `unique` may be functions of
the task's arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal, TypedDict, TypeVar, Unpack, cast

import msgspec

from rate_envelope_queue import Rate, Stamp

from ...errors import BadInputError
from ...jobtypes.terms import Kinds, TypeOptions, terms_of
from ...model.job import OnDuplicate
from ...model.request import in_seconds, read
from ...model.text import did_you_mean
from ...settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_ATTRIBUTE = "jobpipe_options"
_OF_DJANGO = {"queue": "queue_name", "priority": "priority"}
"""What `@task` and `using` say, and by which name."""
_OF_TYPE = TypeOptions.__annotations__.keys() - _OF_DJANGO.keys()
_OF_JOB = ("unique", "on_duplicate", "max_wait", "expires_in", "tags")
_NAMES = sorted({*_OF_TYPE, *_OF_JOB})
_RETRIES = {"max_retries": 0}
"""Django's users expect that a task that fails has failed."""


class TaskOptions(TypedDict, total=False):
    """The options of a task."""

    max_retries: int
    deadline: float | timedelta | None
    base: float | timedelta
    cap: float | timedelta
    jitter: bool
    rate: Rate | str | None
    concurrency: int | None
    key: Callable[..., str | int] | None
    check: Callable[..., object] | None
    retry_on: Kinds | None
    fail_on: Kinds | None
    stamps: Iterable[Stamp]
    logs: bool
    isolate: bool | None
    memory: int | str | None
    max_jobs_per_child: int
    unique: str | Literal[True] | Callable[..., str | None] | None
    on_duplicate: OnDuplicate | Literal["keep", "replace", "restart"] | None
    max_wait: float | timedelta | None
    expires_in: float | timedelta | None
    tags: Iterable[str] | None


def task_options(**options: Unpack[TaskOptions]) -> Callable[[F], F]:
    """Retries, limits and `unique` of one task; to be written below `@task()`."""

    def decorate(function: F) -> F:
        if not callable(function):
            raise TypeError(f"@task_options goes below @task(), on the function, got {function!r}")
        try:
            setattr(function, _ATTRIBUTE, _checked(dict(options)))
        except (TypeError, BadInputError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"@task_options of {function.__module__}.{function.__qualname__}: {error}") from None
        return function

    return decorate


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The payload of a task's job."""

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    run_after: datetime | None = None
    """As `using` was given it: a retry changes the time of the job."""


NO_ARGUMENTS = Call()
"""What a job without a payload is: one of a schedule, say."""


class BackendOptions:
    """The OPTIONS of a backend: settings of its pipe, limits of queues, and defaults of its tasks."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        settings = {each.name for each in fields(Settings)}
        known = {*settings, *_NAMES, "queue_limits"}
        for name in given:
            if name not in known:
                raise BadInputError(name, f"is not a known option{did_you_mean(name, known)}")
        self.settings = {name: value for name, value in given.items() if name in settings}
        Settings.load(defaults=self.settings)
        self.queue_limits: Mapping[str, Mapping[str, Any]] = given.get("queue_limits", {})
        if not isinstance(self.queue_limits, Mapping):
            raise BadInputError("queue_limits", f"must be limits by queue, got {self.queue_limits!r}")
        self._defaults = _checked({name: value for name, value in given.items() if name in _NAMES})

    def of(self, function: Callable[..., Any]) -> OptionsOfTask:
        """What holds for a task: its own options come first."""
        return OptionsOfTask(_checked({**_RETRIES, **self._defaults, **getattr(function, _ATTRIBUTE, {})}))


class OptionsOfTask:
    """What holds for one task."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    @property
    def of_type(self) -> TypeOptions:
        """The options of its job type."""
        found = {name: value for name, value in self._options.items() if name in _OF_TYPE}
        for name in ("key", "check"):
            if found.get(name) is not None:
                found[name] = _of_arguments(found[name])
        return cast(TypeOptions, found)

    def of_job(self, path: str, call: Call) -> dict[str, Any]:
        """The options of the job for a call of the task."""
        found = {name: self._options[name] for name in _OF_JOB if self._options.get(name) is not None}
        if "unique" in found:
            found["unique"] = _unique_name(found["unique"], path, call)
            if found["unique"] is None:
                for name in ("unique", "on_duplicate", "max_wait"):
                    found.pop(name, None)
        return found


def _of_arguments(function: Callable[..., Any]) -> Callable[[Call], Any]:
    return lambda call: function(*call.args, **call.kwargs)


def _unique_name(unique: Any, path: str, call: Call) -> Any:
    if unique is True:
        arguments = msgspec.json.encode([call.args, call.kwargs], order="deterministic")
        return f"{path}:{blake2b(arguments, digest_size=16).hexdigest()}"
    return unique(*call.args, **call.kwargs) if callable(unique) else unique


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """The options; TypeError or BadInputError naming the one that is wrong."""
    for name in options:
        if name in _OF_DJANGO:
            raise TypeError(f"{name!r} is no option here: write @task({_OF_DJANGO[name]}=…)")
        if name not in _NAMES:
            hint = did_you_mean(name, _NAMES) or f"; known options: {', '.join(_NAMES)}"
            raise TypeError(f"unknown option {name!r}{hint}")
    terms_of(cast(TypeOptions, {name: value for name, value in options.items() if name in _OF_TYPE}))
    of_job = {name: options[name] for name in _OF_JOB if options.get(name) is not None}
    unique = of_job.get("unique")
    if unique is True or callable(unique):
        of_job["unique"] = "of-the-arguments"
    read(in_seconds(of_job))
    return options
