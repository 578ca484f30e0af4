"""The built-in job types: echo and http, which every pipe knows, and sleep and fail, for trying things out.

Why the last two are off in a program with types of its own: any caller could fill the slots with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from .http.job import DEADLINE, NAME, HttpJob

if TYPE_CHECKING:
    from .jobtype import JobType


async def echo(payload: Any) -> Any:
    """Return the payload."""
    return payload


async def sleep(seconds: Annotated[float, Meta(ge=0, le=86_400)]) -> float:
    """Sleep for the given number of seconds, and return it."""
    await asyncio.sleep(seconds)
    return seconds


class JobFailed(Exception):
    """What the type `fail` raises."""


async def fail(message: str | None) -> None:
    """Fail with the message."""
    raise JobFailed(message or "it was asked to fail")


_TRIALS = (sleep, fail)
NEEDS = {
    NAME: "the built-in type needs JOBPIPE_HTTP_TARGETS",
    **{handler.__name__: "the built-in type needs --builtins, or JOBPIPE_BUILTINS=on" for handler in _TRIALS},
}
"""What a worker needs to know a type that is off by default, by its name."""


def register(job: Callable[..., Any], http_targets: Callable[[], Iterable[str]]) -> None:
    """Make echo and http known by `Jobpipe.job`; a program may define its own of the same name."""
    job(echo.__name__)(echo)
    register_http(job, HttpJob(http_targets))


def register_trials(job: Callable[..., Any], known: Container[str]) -> None:
    """Make sleep and fail known, unless the program has its own of that name."""
    for handler in _TRIALS:
        if handler.__name__ not in known:
            job(handler.__name__)(handler)


def register_http(job: Callable[..., Any], handler: HttpJob) -> None:
    """Make the type `http` known; tests bring one with a network of their own."""
    job(NAME, deadline=DEADLINE, check=handler.check)(handler)


def is_built_in(job_type: JobType[..., Any]) -> bool:
    """Is it one of these?"""
    handler = job_type.__wrapped__
    return handler in (echo, *_TRIALS) or isinstance(handler, HttpJob)
