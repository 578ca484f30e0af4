"""Problem details (RFC 9457): every error that a caller gets to see, made from one table.

What is not in the table is unexpected: it is logged here, and the caller learns nothing of it but that it was.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, UnsetType
from starlette.responses import Response

from ..errors import (
    BadInputError,
    DuplicateError,
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
    WrongStatusError,
)
from ..model.json import BadJsonError
from .asgi import SAFE_HEADERS

if TYPE_CHECKING:
    from starlette.types import Scope

logger = logging.getLogger("jobpipe")

MEDIA_TYPE = "application/problem+json"
_MOST_SHOWN = 2_000
_SOON = 5
"""Seconds after which to try again what nobody can foresee."""


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is wrong with a request."""

    type: str
    title: str
    status: int
    detail: str
    field: str | UnsetType = UNSET
    """Which field is wrong, where it is one."""
    about: dict[str, Any] | UnsetType = UNSET
    """What else the error tells: the id of the job, its status, how full the queue is, …"""


class HttpError(JobpipeError):
    """What can only go wrong over HTTP; one subclass for each row of the table."""

    def __init__(self, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class BodyTooLargeError(HttpError): ...


class ContentTypeError(HttpError): ...


class ForeignHostError(HttpError): ...


class ForeignOriginError(HttpError): ...


class ForeignCallerError(HttpError): ...


class NoTokenError(HttpError): ...


class ReadOnlyTokenError(HttpError): ...


class TooManyWrongTokensError(HttpError):
    """The answer comes after a delay, and ends the connection."""

    delay = 0.0


class NotReadyError(HttpError): ...


class NoSuchPathError(HttpError): ...


class WrongMethodError(HttpError): ...


class TooManyStreamsError(HttpError): ...


class TooManyBodiesError(HttpError): ...


class _Kind(NamedTuple):
    status: int
    slug: str
    title: str
    detail: str | None = None
    """What to say in place of the error's own words, which are for the log only."""


_AWAY = "the store cannot be reached, or cannot write, at the moment. The request may have been processed: send it again with the same id"
_REFUSED = "the store cannot be used until it is repaired; see the log of the service"
_UNEXPECTED = _Kind(
    500, "internal", "Internal error", "an internal error occurred; see the log of the service"
)

KINDS: Mapping[type[Exception], _Kind] = {
    BadJsonError: _Kind(400, "bad-json", "Not JSON"),
    ForeignHostError: _Kind(400, "foreign-host", "Foreign host"),
    NoTokenError: _Kind(401, "no-token", "No valid token"),
    ReadOnlyTokenError: _Kind(403, "read-only-token", "The token is for reading only"),
    ForeignCallerError: _Kind(403, "foreign-caller", "For this machine only"),
    ForeignOriginError: _Kind(403, "foreign-origin", "Foreign origin"),
    NoSuchPathError: _Kind(404, "no-such-path", "No such path"),
    JobNotFoundError: _Kind(404, "job-not-found", "No such job"),
    ScheduleNotFoundError: _Kind(404, "schedule-not-found", "No such schedule"),
    WrongMethodError: _Kind(405, "wrong-method", "Wrong method"),
    JobConflictError: _Kind(409, "job-conflict", "The id is taken"),
    DuplicateError: _Kind(409, "duplicate", "Another job of the unique name waits"),
    SignalRefusedError: _Kind(409, "signal-refused", "The job does not accept the signal"),
    WrongStatusError: _Kind(409, "wrong-status", "The job's status does not allow it"),
    BodyTooLargeError: _Kind(413, "body-too-large", "The body is too large"),
    PayloadTooLargeError: _Kind(413, "payload-too-large", "The payload is too large"),
    ContentTypeError: _Kind(415, "content-type", "Not sent as JSON"),
    BadInputError: _Kind(422, "bad-input", "A value is wrong"),
    TooManyNamesError: _Kind(422, "too-many-names", "Too many names"),
    TooManyWrongTokensError: _Kind(429, "too-many-wrong-tokens", "Too many wrong tokens"),
    QueueFullError: _Kind(503, "queue-full", "The queue is full"),
    TooManyScheduledError: _Kind(503, "too-many-scheduled", "Too many jobs are scheduled"),
    StoppingError: _Kind(503, "stopping", "The service is stopping"),
    NotReadyError: _Kind(503, "not-ready", "The service is not ready"),
    TooManyStreamsError: _Kind(503, "too-many-streams", "Too many streams"),
    TooManyBodiesError: _Kind(503, "too-many-bodies", "Too many large bodies"),
    StoreAwayError: _Kind(503, "store-away", "The store is unavailable", _AWAY),
    StoreError: _Kind(503, "store-refused", "The store cannot be used", _REFUSED),
    Exception: _UNEXPECTED,
}


def answer(error: Exception, scope: Scope, retry_after: int | None = None) -> Response:
    """The response that tells of the error; what nobody expected is logged with its traceback."""
    kind = next(KINDS[each] for each in type(error).__mro__ if each in KINDS)
    headers = dict(getattr(error, "headers", {}))
    if kind is _UNEXPECTED:
        logger.error("unexpected error in %s %r", scope["method"], scope["path"], exc_info=error)
    if kind.status == 503:
        headers.setdefault("retry-after", str(retry_after or _SOON))
    problem = Problem(
        type=f"urn:jobpipe:problem:{kind.slug}",
        title=kind.title,
        status=kind.status,
        detail=_printable(kind.detail or str(error)),
        field=_printable(error.field) if isinstance(error, BadInputError) else UNSET,
        about=UNSET if kind.detail or isinstance(error, HttpError) else _about(error) or UNSET,
    )
    return Response(msgspec.json.encode(problem), kind.status, headers, MEDIA_TYPE)


_REFUSALS = {
    400: ("not-http", "Not HTTP"),
    408: ("timed-out", "The request timed out"),
    431: ("head-too-long", "The headers are too long"),
    500: (_UNEXPECTED.slug, _UNEXPECTED.title),
    503: ("too-many-connections", "Too many connections"),
}
"""What the server refuses by itself, before there is a call."""


def refusal_answer(status: int, detail: str) -> bytes:
    """A whole answer as it goes over the wire, after which the connection ends."""
    slug, title = _REFUSALS[status]
    problem = Problem(type=f"urn:jobpipe:problem:{slug}", title=title, status=status, detail=detail)
    body = msgspec.json.encode(problem)
    headers = [*SAFE_HEADERS, (b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    if status == 503:
        headers.append((b"retry-after", b"%d" % _SOON))
    first = b"HTTP/1.1 %d %b" % (status, HTTPStatus(status).phrase.encode())
    lines = [first, *(b"%b: %b" % each for each in headers), b"connection: close"]
    return b"\r\n".join([*lines, b"", body])


def _about(error: Exception) -> dict[str, Any]:
    """The attributes of an error, for a client that makes the same error of them."""
    return {
        name: _printable(value) if isinstance(value, str) else value
        for name, value in vars(error).items()
        if name != "field" and isinstance(value, str | int)
    }


def _printable(text: str) -> str:
    """The text, not all if it is long, with lone surrogates, which no encoder takes, written out."""
    if len(text) > _MOST_SHOWN:
        text = f"{text[:_MOST_SHOWN]}…"
    return text.encode("utf-8", "backslashreplace").decode()
