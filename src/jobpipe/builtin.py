"""The job types that every pipe knows: echo, sleep and fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

if TYPE_CHECKING:
    from .app import Jobpipe
    from .handler import JobType


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


_HANDLERS = (echo, sleep, fail)


def register(pipe: Jobpipe) -> None:
    """Make the built-in types known; a program may define its own of the same name."""
    for handler in _HANDLERS:
        pipe.job(handler.__name__)(handler)


def is_built_in(job_type: JobType[..., Any]) -> bool:
    """Is it one of these?"""
    return job_type.__wrapped__ in _HANDLERS
