"""Terms: what a program says of a job type beside its handler, checked when it is registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from msgspec import UNSET

from rate_envelope_queue import Rate

from ..gateway.limits import limit_of
from ..model.backoff import Backoff
from ..model.gate import Limit
from ..model.ids import check_name
from ..model.job import DEFAULT_QUEUE, DEFAULT_RETRIES
from ..model.request import read
from ..model.text import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a job of the type has where the caller says nothing."""

    queue: str
    max_retries: int
    priority: int
    deadline: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms the jobs of a type run."""

    defaults: Defaults
    backoff: Backoff
    limit: Limit | None
    key: Callable[[Any], Any] | None
    check: Callable[[Any], object] | None


class TypeOptions(TypedDict, total=False):
    """The options of a job type."""

    queue: str
    max_retries: int
    priority: int
    deadline: float | None
    base: float
    cap: float
    jitter: bool
    rate: Rate | str | None
    concurrency: int | None
    key: Callable[[Any], str | int] | None
    check: Callable[[Any], object] | None


def terms_of(options: TypeOptions) -> Terms:
    """What was said of a type, checked. Why through a request: defaults obey the same rules as the fields of a job."""
    known = TypeOptions.__annotations__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        hint = did_you_mean(unknown[0], known) or f"; known options: {', '.join(known)}"
        raise TypeError(f"unknown option {unknown[0]!r}{hint}")
    named: Mapping[str, Any] = options
    fields = {name: named[name] for name in ("queue", "max_retries", "priority") if name in named}
    if named.get("deadline") is not None:
        fields["deadline"] = named["deadline"]
    given = read(fields)
    key = named.get("key")
    return Terms(
        defaults=Defaults(
            queue=DEFAULT_QUEUE if given.queue is UNSET else check_name("queue", given.queue),
            max_retries=DEFAULT_RETRIES if given.max_retries is UNSET else given.max_retries,
            priority=0 if given.priority is UNSET else given.priority,
            deadline=None if given.deadline is UNSET else given.deadline,
        ),
        backoff=Backoff(**{name: named[name] for name in ("base", "cap", "jitter") if name in named}),
        limit=limit_of(named.get("rate"), named.get("concurrency"), key),
        key=key,
        check=named.get("check"),
    )
