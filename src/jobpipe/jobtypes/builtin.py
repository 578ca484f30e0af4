"""The built-in job types: echo and http, which every pipe knows, and sleep and fail, for trying things out.

Why the last two are off beside types of one's own: whoever may enqueue could fill the slots with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from .http.job import DEADLINE, NAME, HttpJob

if TYPE_CHECKING:
    from ..app import Jobpipe
    from .jobtype import JobType


async def echo(payload: Any) -> Any:
    """Return the payload."""
    return payload


async def sleep(seconds: Annotated[float, Meta(ge=0, le=86_400)]) -> float:
    """Sleep for so many seconds, and return them."""
    await asyncio.sleep(seconds)
    return seconds


class JobFailed(Exception):
    """What the type `fail` raises."""


async def fail(message: str | None) -> None:
    """Fail with the message."""
    raise JobFailed(message or "it was asked to fail")


_TRIALS = (sleep, fail)
TRIALS = tuple(handler.__name__ for handler in _TRIALS)
"""The types that the setting `builtins` turns on."""


def register(pipe: Jobpipe) -> None:
    """Make echo and http known; a program may define its own of the same name."""
    pipe.job(echo.__name__)(echo)
    register_http(pipe, HttpJob(pipe))


def register_trials(pipe: Jobpipe, known: Container[str]) -> None:
    """Make sleep and fail known, unless the program has its own of that name."""
    for handler in _TRIALS:
        if handler.__name__ not in known:
            pipe.job(handler.__name__)(handler)


def register_http(pipe: Jobpipe, handler: HttpJob) -> None:
    """Make the type `http` known; tests bring one with a network of their own."""
    pipe.job(NAME, deadline=DEADLINE, check=handler.check)(handler)


def is_on(job_type: JobType[..., Any]) -> bool:
    """Can its jobs be run? Those of `http` cannot until the settings say what may be called."""
    handler = job_type.__wrapped__
    return not isinstance(handler, HttpJob) or handler.is_on


def is_built_in(job_type: JobType[..., Any]) -> bool:
    """Is it one of these?"""
    handler = job_type.__wrapped__
    return handler in (echo, *_TRIALS) or isinstance(handler, HttpJob)
