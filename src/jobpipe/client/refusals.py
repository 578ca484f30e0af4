"""From the problem details of the service to the errors that Jobpipe raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import (
    BadInputError,
    DuplicateError,
    ForbiddenError,
    JobConflictError,
    JobNotFoundError,
    JobpipeError,
    PayloadTooLargeError,
    QueueFullError,
    ScheduleNotFoundError,
    SignalRefusedError,
    StoppingError,
    StoreAwayError,
    StoreError,
    TooManyNamesError,
    TooManyScheduledError,
    UnauthorizedError,
    UnreachableError,
    WrongStatusError,
)
from .call import Answer

KINDS: Mapping[str, type[JobpipeError]] = {
    "bad-input": BadInputError,
    "duplicate": DuplicateError,
    "job-conflict": JobConflictError,
    "job-not-found": JobNotFoundError,
    "payload-too-large": PayloadTooLargeError,
    "queue-full": QueueFullError,
    "schedule-not-found": ScheduleNotFoundError,
    "signal-refused": SignalRefusedError,
    "stopping": StoppingError,
    "store-away": StoreAwayError,
    "store-refused": StoreError,
    "too-many-names": TooManyNamesError,
    "too-many-scheduled": TooManyScheduledError,
    "wrong-status": WrongStatusError,
}
"""The errors that the service shares with Jobpipe, by the end of the problem's `type`."""
_UNAUTHORIZED = (401, 407)
_BUSY = frozenset({408, 425, 429, 502, 503, 504})
"""Answers of a service, or of a proxy before it, that are worth another try."""


class Problem(Struct):
    """What the service says is wrong."""

    detail: str
    type: str = ""
    field: str | None = None
    about: dict[str, Any] = {}
    """The attributes of the error."""


def error_of(answer: Answer, url: str) -> JobpipeError:
    """The error that an answer stands for, which is none of 2xx."""
    try:
        problem = msgspec.json.decode(answer.body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = f"the server at {url} answered {answer.status}: is it a jobpipe service?"
        return UnreachableError(text) if answer.status in _BUSY else _by_status(answer.status, text, "")
    kind = problem.type.rpartition(":")[2]
    if kind not in KINDS:
        return _by_status(answer.status, _refused(url, problem.detail), kind)
    error = KINDS[kind].__new__(KINDS[kind])  # Why not called: what it would say, the service has said
    error.args = (problem.detail,)
    error.__dict__ |= problem.about
    if isinstance(error, BadInputError):
        error.field = problem.field or ""
    return error


def _refused(url: str, detail: str) -> str:
    return f"the service at {url} refuses: {detail}"


def _by_status(status: int, text: str, kind: str) -> JobpipeError:
    if status in _UNAUTHORIZED or kind == "too-many-wrong-tokens":
        return UnauthorizedError(text)
    if status == 403:
        return ForbiddenError(text, kind)
    return UnreachableError(text) if status in _BUSY else JobpipeError(text)


def is_passing(error: JobpipeError) -> bool:
    """Is it worth another try?"""
    if isinstance(error, QueueFullError):
        about = vars(error)  # a service of another version may not tell
        return bool(about.get("needed", 0) <= about.get("capacity", 0))
    return isinstance(error, UnreachableError | StoppingError | StoreAwayError)


def retry_after(answer: Answer) -> float:
    """In how many seconds the service wants to be asked again; 0 if it does not say."""
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0
