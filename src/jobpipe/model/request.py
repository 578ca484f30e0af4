"""JobRequest: a job as somebody asks for it, the same over HTTP, in Python and on the command line.

`read` checks what came in against the one description of the fields below; every bad_input names its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from ..errors import BadInputError
from .ids import LONGEST_ID, LONGEST_NAME
from .job import DEFAULT_RETRIES, DEFAULT_TYPE, instant
from .validation import bad_input

_ALLOWED = "^[A-Za-z0-9][A-Za-z0-9._:@-]*$"
LARGEST_BATCH = 1_000
"""Jobs in one call."""
LONGEST_DELAY = 10 * 366 * 86_400.0
LONGEST_DEADLINE = 86_400.0
MOST_RETRIES = 100

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, pattern=_ALLOWED)]
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=_ALLOWED)]
Retries = Annotated[
    int,
    Meta(
        ge=0,
        le=MOST_RETRIES,
        description=f"retries after the first run; default: that of the type, or {DEFAULT_RETRIES}",
    ),
]
Priority = Annotated[int, Meta(ge=-1000, le=1000)]
Delay = Annotated[float, Meta(ge=0, le=LONGEST_DELAY)]
Deadline = Annotated[float, Meta(gt=0, le=LONGEST_DEADLINE)]
Instant = Annotated[datetime, Meta(tz=True)]


class JobRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to enqueue; fields that are left out have the default of the type, or else of the service."""

    id: Id | UnsetType = UNSET
    type: Name = DEFAULT_TYPE
    queue: Name | UnsetType = UNSET
    payload: Any = None
    max_retries: Retries | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    run_at: Instant | UnsetType = UNSET
    delay: Delay | UnsetType = UNSET
    deadline: Deadline | UnsetType = UNSET

    RULES: ClassVar[dict[str, Any]] = {"not": {"required": ["delay", "run_at"]}}
    """What its schema says beyond the fields."""


class JobOptions(TypedDict, total=False):
    """The fields of a request beside type and payload, as keywords of a call; None counts as not given."""

    id: str | None
    queue: str | None
    max_retries: int | None
    priority: int | None
    run_at: datetime | None
    delay: float | None
    deadline: float | None


def request_of(type: str | JobRequest, payload: Any, options: JobOptions) -> JobRequest:
    """The request in the arguments of a call: a type and a payload, or a request that the options add to."""
    given = {name: value for name, value in options.items() if value is not None}
    if not isinstance(type, JobRequest):
        return read({"type": type, "payload": payload, **given})
    if payload is not None:
        raise BadInputError("payload", "is part of the request: give it there only")
    return read({name: value for name, value in asdict(type).items() if value is not UNSET} | given)


def read(fields: Any, where: str = "") -> JobRequest:
    """The request in a JSON object (or the keywords of a call); BadInputError naming the field."""
    return check(convert(fields, JobRequest, where), where)


def read_many(requests: Iterable[JobRequest], where: str = "jobs") -> Iterator[JobRequest]:
    """The requests that a program made, checked as if they had been read: a Struct takes anything."""
    for index, request in enumerate(requests):
        if (
            request.max_retries is UNSET
            and request.priority is UNSET
            and request.run_at is UNSET
            and request.delay is UNSET
            and request.deadline is UNSET
        ):
            yield request  # names and payload are looked at by whoever prepares the job
            continue
        given = {name: value for name, value in asdict(request).items() if value is not UNSET}
        yield read(given, f"{where}[{index}].")


def check(request: JobRequest, where: str = "") -> JobRequest:
    """The rules that no type can say."""
    if request.run_at is UNSET and request.delay is UNSET and request.deadline is UNSET:
        return request
    for field in ("delay", "deadline"):
        value = getattr(request, field)
        if value is not UNSET and not isfinite(value):
            raise BadInputError(where + field, f"must be a finite number of seconds, got {value!r}")
    if request.run_at is not UNSET:
        try:
            instant(request.run_at.timestamp())  # Why: the last microsecond of 9999 is rounded out of it
        except (OverflowError, ValueError):
            raise BadInputError(f"{where}run_at", "must be in the years 1 to 9999, also in UTC") from None
    if request.delay is not UNSET and request.run_at is not UNSET:
        raise BadInputError(f"{where}delay", "and run_at exclude each other: give one of them")
    return request


def convert(value: Any, type: Any, where: str = "") -> Any:
    """The value as the type; BadInputError that names the field, and shows what it had."""
    try:
        return msgspec.convert(value, type)
    except msgspec.ValidationError as error:
        raise bad_input(error, value, type, where) from None
    except UnicodeEncodeError as error:  # Why not before: msgspec looks at keys only where it compares them
        raise BadInputError(
            f"{where}{error.object[:40]!a}", "contains a lone surrogate, which is not a character"
        ) from None
