"""The query of a URL, read strictly: what is unknown, given twice or out of range is refused by its name."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from ..errors import BadInputError
from ..gateway.jobs import LONGEST_WAIT, MOST_AT_ONCE, MOST_LINES
from ..model.job import JobStatus
from ..model.request import Name, Search, Tag
from ..model.validation import bad_input

Q = TypeVar("Q")
_MOST_FIELDS = 20
Limit = Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)]
Cursor = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9]{1,18}$"})]


class NoQuery(Struct, forbid_unknown_fields=True):
    """Of a call that takes none."""


class JobFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs."""

    status: JobStatus | UnsetType = UNSET
    type: Name | UnsetType = UNSET
    queue: Name | UnsetType = UNSET
    tag: Tag | UnsetType = UNSET
    error: Search | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name, value in asdict(self).items() if value is not UNSET}


class JobsQuery(JobFilter, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs, how many, and from where on."""

    text: Search | UnsetType = UNSET
    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class StepsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many steps, and from where on."""

    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class EventsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """What else than jobs to tell of."""

    pulse: bool = False


class LogsQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """The number of lines that are known."""

    after: Annotated[int, Meta(ge=0, le=MOST_LINES)] = 0


class WaitQuery(Struct, kw_only=True, forbid_unknown_fields=True):
    """How many seconds to wait."""

    timeout: Annotated[float, Meta(ge=0, le=LONGEST_WAIT)] = 30.0


def read_query(raw: bytes, type: type[Q]) -> Q:
    """The query as the type; BadInputError naming the parameter."""
    values: dict[str, str] = {}
    try:
        pairs = parse_qsl(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise BadInputError("the query", f"has more than {_MOST_FIELDS} parameters") from None
    for name, value in pairs:
        if name in values:
            raise BadInputError(name, "is given twice")
        values[name] = value
    try:
        # Why not strict: all that a URL holds is text, also numbers.
        return msgspec.convert(values, type, strict=False)
    except msgspec.ValidationError as error:
        raise bad_input(error, values, type) from None
