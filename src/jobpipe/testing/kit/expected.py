"""Expected: what a test expects of a job that was enqueued, how a job differs from it, and how both are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec import UNSET, UnsetType
from msgspec import json as msgspec_json

from ...errors import BadInputError, seconds_of
from ...model import json
from ...model.job import DEFAULT_QUEUE, Job, instant
from ...model.newjob import NewJob
from ...model.request import JobOptions
from ...model.text import did_you_mean

_EXACT = 0.001
_ABOUT = 1.0
"""Seconds by which a delay may differ that was given as a time: the program has asked its own clock."""
_MOST_SHOWN = 30
_LONGEST_SHOWN = 200

Asked = tuple[Job, NewJob]
"""A job, and what was asked for."""


class Expected:
    """A type, a part of its payload, and options as `enqueue` takes them; what is not given may be anything."""

    def __init__(self, type: str | None, payload: Any | UnsetType, options: JobOptions) -> None:
        known = JobOptions.__annotations__
        for name in options:
            if name not in known:
                raise BadInputError(name, f"is not a known field{did_you_mean(name, known)}")
        self._type = type
        # Why by JSON: a model is the same as the object that it is stored as.
        self._payload = payload if payload is UNSET else msgspec_json.decode(json.encode(payload))
        self._options = {name: value for name, value in options.items() if value is not None}

    def __str__(self) -> str:
        given = {} if self._payload is UNSET else {"payload": self._payload}
        fields = ", ".join(f"{name}={value!r}" for name, value in (given | self._options).items())
        named = "a job" if self._type is None else f"a job {self._type!r}"
        return f"{named} with {fields}" if fields else named

    def fits(self, asked: Asked) -> bool:
        """Is it such a job?"""
        return self.is_of_type(asked[0]) and not any(self.differences(asked))

    def is_of_type(self, job: Job) -> bool:
        """Is it of the type, whatever else it is?"""
        return self._type in (None, job.type)

    def differences(self, asked: Asked) -> Iterator[str]:
        """What is other than expected."""
        if self._payload is not UNSET:
            yield from _lacking("payload", self._payload, asked[0].payload)
        for name, wanted in self._options.items():
            found = _FOUND[name](asked) if name in _FOUND else getattr(asked[0], name)
            if not _is_same(name, wanted, found, asked[1]):
                yield f"{name} is {found!r}, not {wanted!r}"

    def listing(self, jobs: Sequence[Asked]) -> str:
        """All that was enqueued, with what is other than expected in those of the type."""
        if not jobs:
            return "nothing was enqueued"
        lines = ["1 job was enqueued:" if len(jobs) == 1 else f"{len(jobs)} jobs were enqueued:"]
        for asked in jobs[:_MOST_SHOWN]:
            lines.append(f"  - {_line(asked)}")
            if self.is_of_type(asked[0]):
                lines += [f"      {difference}" for difference in self.differences(asked)]
        if len(jobs) > _MOST_SHOWN:
            lines.append(f"  and {len(jobs) - _MOST_SHOWN} more")
        return "\n".join(lines)


def _delay(asked: Asked) -> float:
    """Seconds from the call to when the job is due."""
    created_at = asked[0].created_at.timestamp()
    return round(asked[1].due_at(created_at) - created_at, 6)


def _expires_in(asked: Asked) -> float | None:
    job = asked[0]
    return None if job.expires_at is None else (job.expires_at - job.created_at).total_seconds()


def _run_at(asked: Asked) -> datetime:
    return instant(asked[1].due_at(asked[0].created_at.timestamp()))


_FOUND = {"delay": _delay, "expires_in": _expires_in, "run_at": _run_at}
_DURATIONS = ("delay", "deadline", "expires_in", "max_wait")


def _is_same(name: str, wanted: Any, found: Any, new: NewJob) -> bool:
    if name == "tags":
        return set(wanted) <= set(found)
    if found is None:
        return False
    if isinstance(found, datetime):
        return bool(abs((found - wanted).total_seconds()) < _EXACT)
    if name in _DURATIONS:
        is_by_time = (name == "delay" and new.run_at is not None) or (
            name == "expires_in" and new.expires_at is not None
        )
        return bool(abs(found - seconds_of(name, wanted)) < (_ABOUT if is_by_time else _EXACT))
    return bool(found == wanted)


def _lacking(where: str, wanted: Any, found: Any) -> Iterator[str]:
    """Where what is wanted is not in what was found; an object may have more than that."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            if name in found:
                yield from _lacking(f"{where}.{name}", value, found[name])
            else:
                yield f"{where}.{name} is missing"
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, value in enumerate(wanted):
            yield from _lacking(f"{where}[{index}]", value, found[index])
    elif wanted != found:
        yield f"{where} is {_cut(repr(found))}, not {_cut(repr(wanted))}"


def _line(asked: Asked) -> str:
    """One job in words."""
    job = asked[0]
    parts = [job.type, f"payload={_cut(repr(job.payload))}"]
    parts += [f"delay={delay:g}"] if (delay := _delay(asked)) else []
    parts += [f"queue={job.queue!r}"] if job.queue != DEFAULT_QUEUE else []
    parts += [f"priority={job.priority}"] if job.priority else []
    parts += [f"unique={job.unique!r}"] if job.unique is not None else []
    parts += [f"tags={list(job.tags)!r}"] if job.tags else []
    return f"{' '.join(parts)} ({job.status}, id {job.id})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
