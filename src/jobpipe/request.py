"""JobRequest: a job as somebody asks for it, the same over HTTP, in Python and on the command line.

`read` checks what came in against the one description of the fields below; every complaint names its field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from .errors import BadInputError
from .ids import LONGEST_ID, LONGEST_NAME
from .job import DEFAULT_TYPE, JobStatus, instant

_ALLOWED = "^[A-Za-z0-9][A-Za-z0-9._:@-]*$"
LONGEST_DELAY = 10 * 366 * 86_400.0
LONGEST_DEADLINE = 86_400.0
MOST_RETRIES = 100

Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID, pattern=_ALLOWED)]
Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME, pattern=_ALLOWED)]
Retries = Annotated[int, Meta(ge=0, le=MOST_RETRIES)]
Priority = Annotated[int, Meta(ge=-1000, le=1000)]
Delay = Annotated[float, Meta(ge=0, le=LONGEST_DELAY)]
Deadline = Annotated[float, Meta(gt=0, le=LONGEST_DEADLINE)]
Instant = Annotated[datetime, Meta(tz=True)]


class JobRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be said of a new job; what is left out is the default of its type, or else of the service."""

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
    """The fields of a request beside type and payload, as keywords of a call; None says nothing."""

    id: str | None
    queue: str | None
    max_retries: int | None
    priority: int | None
    run_at: datetime | None
    delay: float | None
    deadline: float | None


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
        raise complaint(error, value, where) from None
    except UnicodeEncodeError as error:  # Why not before: msgspec looks at keys only where it compares them
        raise BadInputError(
            f"{where}{error.object[:40]!a}", "holds a lone surrogate, which is no character"
        ) from None


_PATH = re.compile(r"^(?P<problem>.*?)(?: - at `(?P<key>key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_QUOTED = re.compile(r"(?<=value ).*", re.DOTALL)
"""The value in what is said of enumerations and tags."""
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)


def complaint(
    error: msgspec.ValidationError, value: Any, where: str = "", *, is_private: bool = False
) -> BadInputError:
    """What msgspec found, with the field in front and the value behind, unless that is nobody else's business."""
    match = _PATH.match(str(error))
    problem, path = (match["problem"], match["path"] or "") if match else (str(error), "")
    field = (where + path.lstrip(".")).rstrip(".")
    for pattern, words in ((_UNKNOWN, "is not a field that is known here"), (_MISSING, "is required")):
        named = pattern.fullmatch(problem)
        if named:
            return BadInputError(".".join(filter(None, [field, named[1][:100] or "''"])), words)
    problem = problem[:1].lower() + problem[1:]
    if is_private:
        return BadInputError(field or "the body", f"is wrong: {_QUOTED.sub('(not shown)', problem)}")
    if "matching regex" in problem:
        problem = (
            "must consist of A-Z a-z 0-9 . _ : @ -, beginning with a letter or digit, "
            f"got {_shown(value, path)}"
        )
    elif problem.startswith("invalid enum") and field.endswith("status"):
        problem = f"must be one of {', '.join(JobStatus)}, got {_shown(value, path)}"
    elif "got" not in problem and "invalid enum" not in problem:
        problem += f", got {_shown(value, path)}"
    return BadInputError(field or "the body", f"is wrong: {problem}" if "must" not in problem else problem)


def _shown(value: Any, path: str) -> str:
    for step in re.findall(r"\.([^.\[]+)|\[(\d+)\]", path):
        name, index = step
        try:
            value = value[int(index)] if index else value[name]
        except (KeyError, IndexError, TypeError):
            return "something else"
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
