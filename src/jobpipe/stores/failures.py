"""Failed jobs in groups, and how a stored error tells its type: the same in all stores.

Errors are stored as JSON texts that begin with their type: it is read, and compared, without reading the rest, which holds
a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from ..model.counts import FailureGroup, Failures
from ..model.job import instant

ERROR_HEAD = 300
"""Characters of a stored error in which its type stands."""
_LAST = 2e11
"""Seconds since the epoch that a date can tell."""
_TYPE = re.compile(r'\{"type":("(?:[^"\\]|\\.)*")')

Failed: TypeAlias = tuple[str, str | None, float, str]
"""A failed job: its type, the type of its error, when it failed, its id."""


def error_start(type: str) -> str:
    """How the stored errors of a type begin."""
    return f'{{"type":{msgspec.json.encode(type).decode()},'


def error_type_of(head: object) -> str | None:
    """The type of a stored error, of which this is the beginning; None where it tells none."""
    match = _TYPE.match(head) if isinstance(head, str) else None
    return None if match is None else _unquoted(match[1])


@lru_cache(maxsize=1_000)
def _unquoted(text: str) -> str | None:
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        return None


def failed_of(row: Sequence[Any]) -> Failed:
    """A row with the beginning of the error in place of its type; what another program wrote there has a stand-in."""
    type, head, finished_at, id = row
    is_time = isinstance(finished_at, int | float) and 0 <= finished_at < _LAST
    return (
        type if isinstance(type, str) else "?",
        error_type_of(head),
        finished_at if is_time else 0.0,
        id if isinstance(id, str) else "?",
    )


def failures_of(failed: Iterable[Failed], limit: int) -> Failures:
    """The groups of up to `limit` failed jobs, of which the last is told first; one more says that there are more."""
    groups: dict[tuple[str, str | None], list[Failed]] = {}
    counted, is_complete = 0, True
    for each in failed:
        if counted == limit:
            is_complete = False
            break
        counted += 1
        groups.setdefault(each[:2], []).append(each)
    return Failures(
        failures=[_group_of(members) for members in groups.values()],
        counted=counted,
        is_complete=is_complete,
    )


def _group_of(members: list[Failed]) -> FailureGroup:
    type, error, last_at, last_id = members[0]
    first_at = members[-1][2]
    return FailureGroup(
        type=type,
        error=error,
        count=len(members),
        first_at=instant(first_at),
        last_at=instant(last_at),
        last_id=last_id,
    )
