"""JobRequest: a job as somebody asks for it, the same over HTTP, in Python and on the command line.

`read` checks what came in against the one description of the fields below; every bad_input names its field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from math import isfinite
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from ..errors import BadInputError
from .ids import LONGEST_ID, LONGEST_NAME
from .job import DEFAULT_RETRIES, DEFAULT_TYPE, OnDuplicate, instant
from .validation import bad_input

_ALLOWED = "^[A-Za-z0-9][A-Za-z0-9._:@-]*$"
LARGEST_BATCH = 1_000
"""Jobs in one call."""
LONGEST_DELAY = 10 * 366 * 86_400.0
LONGEST_DEADLINE = 86_400.0
MOST_RETRIES = 100
MOST_TAGS = 10
LONGEST_TAG = 50

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
if TYPE_CHECKING:
    # Why only there: programs may give a timedelta, which `in_seconds` turns into what JSON and all else here has.
    Delay = float | timedelta
    Deadline = float | timedelta
    MaxWait = float | timedelta
else:
    Delay = Annotated[float, Meta(ge=0, le=LONGEST_DELAY)]
    Deadline = Annotated[float, Meta(gt=0, le=LONGEST_DEADLINE)]
    MaxWait = Annotated[float, Meta(gt=0, le=LONGEST_DELAY)]
Instant = Annotated[datetime, Meta(tz=True)]
Tag = Annotated[str, Meta(min_length=1, max_length=LONGEST_TAG)]
LONGEST_SEARCH = 200
Search = Annotated[str, Meta(min_length=1, max_length=LONGEST_SEARCH)]
Tags = Annotated[list[Tag], Meta(max_length=MOST_TAGS)]


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
    expires_at: Instant | UnsetType = UNSET
    expires_in: Delay | UnsetType = UNSET
    unique: Id | UnsetType = UNSET
    on_duplicate: OnDuplicate | UnsetType = UNSET
    max_wait: MaxWait | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET

    RULES: ClassVar[dict[str, Any]] = {
        "allOf": [
            {"not": {"required": ["delay", "run_at"]}},
            {"not": {"required": ["expires_at", "expires_in"]}},
        ],
        "dependentRequired": {"on_duplicate": ["unique"], "max_wait": ["unique"]},
    }
    """What its schema says beyond the fields."""


class JobOptions(TypedDict, total=False):
    """The fields of a request beside type and payload, as keywords of a call; None counts as not given."""

    id: str | None
    queue: str | None
    max_retries: int | None
    priority: int | None
    run_at: datetime | None
    delay: float | timedelta | None
    deadline: float | timedelta | None
    expires_at: datetime | None
    expires_in: float | timedelta | None
    unique: str | None
    on_duplicate: OnDuplicate | Literal["keep", "replace", "restart"] | None
    max_wait: float | timedelta | None
    tags: Iterable[str] | None


_DURATIONS = ("delay", "deadline", "every", "expires_in", "max_wait")


def in_seconds(fields: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a call with their durations as seconds."""
    for name in _DURATIONS:
        if isinstance(value := fields.get(name), timedelta):
            fields[name] = value.total_seconds()
    return fields


def request_of(type: str | JobRequest, payload: Any, options: JobOptions) -> JobRequest:
    """The request in the arguments of a call: a type and a payload, or a request that the options add to."""
    given = (
        in_seconds({name: value for name, value in options.items() if value is not None}) if options else {}
    )
    if not isinstance(type, JobRequest):
        return read({"type": type, "payload": payload, **given})
    if payload is not None:
        raise BadInputError("payload", "is part of the request: give it there only")
    return read(given_fields(type) | given)


def given_fields(request: Struct) -> dict[str, Any]:
    """What a program has set of a request, as the keywords of a call."""
    return in_seconds({name: value for name, value in asdict(request).items() if value is not UNSET})


def read(fields: Any, where: str = "") -> JobRequest:
    """The request in a JSON object (or the keywords of a call); BadInputError naming the field."""
    return check(convert(fields, JobRequest, where), where)


_OPTIONS = [name for name in JobRequest.__struct_fields__ if name not in ("id", "type", "queue", "payload")]
_options = attrgetter(*_OPTIONS)
_NO_OPTIONS = (UNSET,) * len(_OPTIONS)


def read_many(requests: Iterable[JobRequest], where: str = "jobs") -> Iterator[JobRequest]:
    """The requests that a program made, checked as if they had been read: a Struct takes anything."""
    for index, request in enumerate(requests):
        if _options(request) == _NO_OPTIONS:
            yield request  # names and payload are looked at by whoever prepares the job
        else:
            yield read(given_fields(request), f"{where}[{index}].")


def check(request: JobRequest, where: str = "") -> JobRequest:
    """The rules that no type can say."""
    if _options(request) == _NO_OPTIONS:
        return request
    for seconds, at in (("expires_in", "expires_at"), ("delay", "run_at")):
        if getattr(request, at) is not UNSET:
            _check_instant(getattr(request, at), where + at)
            if getattr(request, seconds) is not UNSET:
                raise BadInputError(where + seconds, f"and {at} exclude each other: give one of them")
    for field in ("expires_in", "max_wait", "delay", "deadline"):
        _check_finite(getattr(request, field), where + field)
    if request.unique is UNSET:
        for field in ("on_duplicate", "max_wait"):
            if getattr(request, field) is not UNSET:
                raise BadInputError(where + field, "requires unique, the name of the work")
    if request.tags is not UNSET:
        for index, tag in enumerate(request.tags):
            check_tag(f"{where}tags[{index}]", tag)
    return request


def check_search(field: str, value: object) -> str:
    """A text to look for; BadInputError naming the field."""
    return check_tag(field, value, LONGEST_SEARCH)


def check_tag(field: str, value: object, longest: int = LONGEST_TAG) -> str:
    """A tag that every store can keep; BadInputError naming the field."""
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        shown = f"{value[:LONGEST_TAG]!a}…" if isinstance(value, str) and value else repr(value)
        raise BadInputError(field, f"must be a string of 1 to {longest} characters, got {shown}")
    if "\0" in value:
        raise BadInputError(field, "contains the character NUL, which not every store can keep")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadInputError(field, "contains a lone surrogate, which is not a character") from None
    return value if type(value) is str else str.__str__(value)


def _check_finite(seconds: object, field: str) -> None:
    if isinstance(seconds, float) and not isfinite(seconds):
        raise BadInputError(field, f"must be a finite number of seconds, got {seconds!r}")


def _check_instant(at: datetime, field: str) -> None:
    try:
        instant(at.timestamp())  # Why: the last microsecond of 9999 is rounded out of it
    except (OverflowError, ValueError):
        raise BadInputError(field, "must be in the years 1 to 9999, also in UTC") from None


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
