"""What a store holds of a job, read with care: another program may have written values that no call lets in.

One verdict for all stores: a job of which a value cannot be read is shown as failed, with an error that says which, and
a worker that claims it is told the same, and does not run it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from ..model.counts import Counts, Tally
from ..model.gate import GateState
from ..model.job import Attempt, Job, JobError, JobStatus, OnDuplicate, Progress, instant

Reader = Callable[[Any], Any]
"""Makes of a stored value that of the job; raises what it likes if that cannot be."""

BROKEN = "BrokenJob"
"""The type of the error that such a job is shown with."""
_SHOWN = 40
_HIDDEN = frozenset({"payload", "result", "error", "progress", "history"})
"""May hold what is nobody's business."""


class Stored(NamedTuple):
    """A job, and what is wrong with it, if anything."""

    job: Job
    problem: str | None


def read_job(values: Mapping[str, Any], readers: Mapping[str, Reader]) -> Stored:
    """Read each value by the reader of its name."""
    found, problem = read_values(values, readers)
    if problem is None:
        return Stored(Job(**found), None)
    found |= {"status": JobStatus.FAILED, "error": JobError(type=BROKEN, message=problem)}
    return Stored(Job(**_STAND_INS | found), problem)


def read_values(
    values: Mapping[str, Any], readers: Mapping[str, Reader]
) -> tuple[dict[str, Any], str | None]:
    """Those that can be read, and what is wrong with the others."""
    found: dict[str, Any] = {}
    wrong: list[str] = []
    for name, value in values.items():
        try:
            found[name] = readers[name](value)
        except Exception:
            wrong.append(name if name in _HIDDEN else f"{name} {_shown(value)}")
    if not wrong:
        return found, None
    return found, f"its stored {', '.join(wrong)} cannot be read: no call of jobpipe wrote that"


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or nothing."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError
    return tuple(map(text, value))


def whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def number(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError
    return float(value)


def duration(value: Any) -> float:
    if number(value) < 0:
        raise ValueError
    return float(value)


def optional(reader: Reader) -> Reader:
    """The same, where there may be nothing."""
    return lambda value: None if value is None else reader(value)


def _instant(value: Any) -> Any:
    return instant(number(value))


def _shown(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"


READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("id", "type", "queue"), text),
    "status": JobStatus,
    **dict.fromkeys(("attempts", "max_retries", "priority"), whole),
    **dict.fromkeys(("run_at", "created_at"), _instant),
    **dict.fromkeys(("started_at", "finished_at", "expires_at"), optional(_instant)),
    **dict.fromkeys(("deadline", "max_wait"), optional(duration)),
    "unique": optional(text),
    "on_duplicate": optional(OnDuplicate),
    "tags": texts,
}
"""Those that are the same in all stores."""
_STAND_INS: dict[str, Any] = {
    **dict.fromkeys(("id", "type", "queue"), "?"),
    "run_at": instant(0.0),
    "created_at": instant(0.0),
}


class Ended(Struct):
    """An entry of the history as it is stored."""

    number: int
    began_at: float
    ended_at: float
    worker: str
    error: JobError | None


def ended_of(attempt: Attempt) -> Ended:
    times = {"began_at": attempt.began_at.timestamp(), "ended_at": attempt.ended_at.timestamp()}
    return Ended(**asdict(attempt) | times)


def attempt_of(ended: Ended) -> Attempt:
    times = {"began_at": instant(ended.began_at), "ended_at": instant(ended.ended_at)}
    return Attempt(**asdict(ended) | times)


def gate_of(row: Sequence[Any]) -> GateState:
    """The state of a gate, from its values in order."""
    return GateState(**dict(zip(GateState.__struct_fields__, (*row[:4], tuple(row[4])), strict=True)))


read_error = msgspec.json.Decoder(JobError).decode
read_progress = msgspec.json.Decoder(Progress).decode


def status_of(stored: Any) -> JobStatus:
    """The status; failed for one that is none."""
    try:
        return JobStatus(stored)
    except ValueError:
        return JobStatus.FAILED


def counts_of(rows: Iterable[Sequence[Any]], paused: Iterable[str]) -> Counts:
    """The rows of the tallies: queue, type, status, count and total; those without a queue are of lanes that are gone.

    Those of a status that is none are among the failed.
    """
    tallies: dict[tuple[str, str, JobStatus], Tally] = {}
    retired: Counter[tuple[str, JobStatus]] = Counter()
    for queue, type, stored, count, total in rows:
        status = status_of(stored)
        if not queue:
            retired[type, status] += total
            continue
        known = tallies.get((queue, type, status), Tally(queue, type, status, 0, 0))
        tallies[queue, type, status] = Tally(queue, type, status, known.count + count, known.total + total)
    return Counts(list(tallies.values()), frozenset(paused), dict(retired))
