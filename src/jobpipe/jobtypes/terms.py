"""Terms: what a program says of a job type beside its handler, checked when it is registered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypedDict

from msgspec import UNSET

from rate_envelope_queue import Rate, Stamp

from ..errors import BadInputError
from ..gateway.limits import limit_of
from ..model.gate import Limit
from ..model.ids import check_name
from ..model.job import DEFAULT_QUEUE, DEFAULT_RETRIES
from ..model.outcome import Backoff
from ..model.request import in_seconds, read
from ..model.text import did_you_mean

MOST_JOBS = 1_000
"""Runs after which a child process is replaced, unless its type says otherwise."""
_SIZE = re.compile(r"(\d+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_LEAST_MEMORY = 16 * 2**20
"""Bytes that an interpreter needs for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a job of the type has where the caller says nothing."""

    queue: str = DEFAULT_QUEUE
    max_retries: int = DEFAULT_RETRIES
    priority: int = 0
    deadline: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On which terms the jobs of a type run."""

    defaults: Defaults
    backoff: Backoff
    limit: Limit | None
    key: Callable[[Any], Any] | None
    check: Callable[[Any], object] | None
    is_final: Callable[[BaseException], bool]
    """Does such an error fail the job, though retries are left?"""
    stamps: tuple[Stamp, ...]
    logs: bool
    """Is what its handler logs kept with the job?"""
    isolate: bool | None
    """Does each run have a process of its own? None where the settings say so."""
    memory: int | None
    """Bytes that such a process may have; None without a bound."""
    max_jobs_per_child: int
    """Runs after which such a process is replaced."""


Kinds = type[BaseException] | tuple[type[BaseException], ...]


class TypeOptions(TypedDict, total=False):
    """The options of a job type."""

    queue: str
    max_retries: int
    priority: int
    deadline: float | timedelta | None
    base: float | timedelta
    cap: float | timedelta
    jitter: bool
    rate: Rate | str | None
    concurrency: int | None
    key: Callable[[Any], str | int] | None
    check: Callable[[Any], object] | None
    retry_on: Kinds | None
    fail_on: Kinds | None
    stamps: Iterable[Stamp]
    logs: bool
    isolate: bool | None
    memory: int | str | None
    max_jobs_per_child: int


def terms_of(options: TypeOptions) -> Terms:
    """What was said of a type, checked. Why through a request: defaults obey the same rules as the fields of a job."""
    known = TypeOptions.__annotations__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        hint = did_you_mean(unknown[0], known) or f"; known options: {', '.join(known)}"
        raise TypeError(f"unknown option {unknown[0]!r}{hint}")
    named: Mapping[str, Any] = options
    fields = {name: named[name] for name in ("queue", "max_retries", "priority", "deadline") if name in named}
    if fields.get("deadline", UNSET) is None:
        del fields["deadline"]
    given = read(in_seconds(fields))
    defaults = {name: getattr(given, name) for name in fields}
    if "queue" in defaults:
        defaults["queue"] = check_name("queue", given.queue)
    key = named.get("key")
    return Terms(
        defaults=Defaults(**defaults),
        backoff=Backoff(**{name: named[name] for name in ("base", "cap", "jitter") if name in named}),
        limit=limit_of(named.get("rate"), named.get("concurrency"), key),
        key=key,
        check=named.get("check"),
        stamps=check_stamps(named.get("stamps", ())),
        logs=_switch("logs", named.get("logs", True)),
        isolate=None if named.get("isolate") is None else _switch("isolate", named["isolate"]),
        memory=_bytes("memory", named.get("memory")),
        max_jobs_per_child=_positive("max_jobs_per_child", named.get("max_jobs_per_child", MOST_JOBS)),
        is_final=_is_final(
            _kinds("retry_on", named.get("retry_on")), _kinds("fail_on", named.get("fail_on"))
        ),
    )


def check_stamps(stamps: Iterable[Stamp]) -> tuple[Stamp, ...]:
    """The stamps as a tuple; BadInputError unless each can be one."""
    found = tuple(stamps) if isinstance(stamps, Iterable) else (None,)
    if not all(map(callable, found)):
        raise BadInputError("stamps", f"must be a list of stamps, got {stamps!r}")
    return found


def _switch(field: str, given: Any) -> bool:
    if not isinstance(given, bool):
        raise BadInputError(field, f"must be True or False, got {given!r}")
    return given


def _bytes(field: str, given: Any) -> int | None:
    """A size: a number of bytes, or a text such as "512M"."""
    if given is None:
        return None
    size = given
    if isinstance(given, str) and (found := _SIZE.fullmatch(given.strip())):
        size = int(found[1]) * _UNITS[found[2].upper()]
    if isinstance(size, bool) or not isinstance(size, int) or size < _LEAST_MEMORY:
        raise BadInputError(
            field,
            f'must be a number of bytes, or a text such as "512M" or "2G", of at least 16M, got {given!r}',
        )
    return size


def _positive(field: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise BadInputError(field, f"must be a whole number of at least 1, got {given!r}")
    return given


def _kinds(field: str, given: Any) -> tuple[type[BaseException], ...] | None:
    if given is None:
        return None
    kinds = tuple(given) if isinstance(given, tuple | list | set | frozenset) else (given,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise BadInputError(field, f"must be an exception class, or a tuple of them, got {kind!r}")
    return kinds


def _is_final(
    retry_on: tuple[type[BaseException], ...] | None, fail_on: tuple[type[BaseException], ...] | None
) -> Callable[[BaseException], bool]:
    """Does an error end the job, however many retries are left? What is in both does."""
    if retry_on is None:
        return lambda error: fail_on is not None and isinstance(error, fail_on)
    return lambda error: not isinstance(error, retry_on) or isinstance(error, fail_on or ())
