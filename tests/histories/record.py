"""Record: all that was seen of a play: by those who put jobs in, by the handlers, and by the store itself.

Values only; `load` reads those that processes have written to files, a line for each thing they saw. A line that was
cut off by `kill -9` has no end of line, and is not there. Instants are seconds since the epoch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SENT, NOTES, STEPS, SIGNALS = "sent", "notes", "steps", "signals"
"""The files of those who put in, of the handlers, of what their steps did, and of those who send signals."""
TIMED_OUT = "timed out"
"""What a run that waited has, if no signal came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A job that somebody has tried to put in."""

    id: str
    type: str
    max_retries: int
    not_before: float = 0.0
    key: str = ""
    unique: str = ""
    """Its unique name, if it has one: then it may take the content of another, or not be there itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as its handler saw it."""

    id: str
    attempt: int
    worker: str
    began_at: float
    ended_at: float | None = None
    how: str = "killed"
    """done, error, suspended, lost (it was told that its lease is), or broken off; killed if it has not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the function of a step has done, and cannot undo."""

    id: str
    name: str
    mark: str
    """That no other has: it is the result of the step."""
    claimed_at: float
    """When its run was claimed, by the store's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a run got: the result of a step, or the payload of a signal."""

    id: str
    name: str
    value: str
    is_signal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """A run that came to a sleep: when it would be over if this were the first, or when it was over."""

    id: str
    name: str
    at: float
    is_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signalled:
    """A signal, and what its sender was told."""

    id: str
    name: str
    payload: str
    how: str = "sent"
    """accepted, or refused; sent if nobody has told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as the store has it in the job's history."""

    number: int
    worker: str
    began_at: float
    ended_at: float
    error: str | None = None
    """Its type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job as the store has it in the end."""

    id: str
    type: str
    status: str
    attempts: int
    max_retries: int
    created_at: float
    unique: str = ""
    result: Any = None
    runs: tuple[StoredRun, ...] = ()
    steps: Mapping[str, Any] = field(default_factory=dict)
    """The results that are recorded."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of status, as the store has told it."""

    id: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What holds for all jobs of a type, or for those of one key, together."""

    type: str
    interval: float = 0.0
    burst: int = 1
    concurrency: int = 0
    is_keyed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """A schedule, and how far it had come in the end."""

    name: str
    every: float
    anchor_at: float
    next_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything."""

    sent: Mapping[str, Sent]
    accepted: frozenset[str]
    cancelled: frozenset[str]
    """Those of which somebody was told that they are, or will be."""
    runs: Sequence[Run]
    effects: Sequence[Effect] = ()
    seen: Sequence[Seen] = ()
    slept: Sequence[Slept] = ()
    signals: Sequence[Signalled] = ()
    jobs: Mapping[str, StoredJob]
    lease: float = 0.0
    events: Sequence[Event] = ()
    bounds: Sequence[Bound] = ()
    rhythm: Rhythm | None = None
    stopped: frozenset[int] = frozenset()
    """The processes that were asked to stop, and so may have given a job back that went on for a moment."""
    lost: frozenset[int] = frozenset()
    """The processes that were killed, or frozen for long."""


def write_line(path: str | Path, **values: Any) -> None:
    """One line more, in one piece, whoever else writes to the file."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, json.dumps(values).encode() + b"\n")
    finally:
        os.close(file)


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines that are whole."""
    if path.exists():
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)


def load_sent(folder: Path) -> tuple[dict[str, Sent], frozenset[str], frozenset[str]]:
    """What was sent, accepted and cancelled. The id that is accepted may be that of another, which is replaced."""
    sent, answers = {}, {"accepted": set[str](), "cancelled": set[str]()}
    for line in read_lines(folder / SENT):
        what = line.pop("what")
        if what == "sent":
            sent[line["id"]] = Sent(**line)
        else:
            answers[what].add(line["id"])
    return sent, frozenset(answers["accepted"]), frozenset(answers["cancelled"])


def load_runs(folder: Path) -> list[Run]:
    """What handlers have noted, in the order in which they began."""
    begun: dict[tuple[str, int, str], list[Run]] = {}
    for line in read_lines(folder / NOTES):
        key = line["id"], line["attempt"], line["worker"]
        if line["what"] == "begin":
            begun.setdefault(key, []).append(
                Run(id=key[0], attempt=key[1], worker=key[2], began_at=line["at"])
            )
        else:
            run = begun[key].pop()
            begun[key].append(
                Run(
                    id=run.id,
                    attempt=run.attempt,
                    worker=run.worker,
                    began_at=run.began_at,
                    ended_at=line["at"],
                    how=line["what"],
                )
            )
    return sorted((run for runs in begun.values() for run in runs), key=lambda run: run.began_at)


def load_steps(folder: Path) -> tuple[list[Effect], list[Seen], list[Slept]]:
    """What steps have done, what runs got, and when they slept."""
    found: dict[str, list[Any]] = {"effect": [], "seen": [], "slept": []}
    kinds = {"effect": Effect, "seen": Seen, "slept": Slept}
    for line in read_lines(folder / STEPS):
        what = line.pop("what")
        found[what].append(kinds[what](**line))
    return found["effect"], found["seen"], found["slept"]


def load_signals(folder: Path) -> list[Signalled]:
    """What was sent, and what became of it."""
    return [Signalled(**line) for line in read_lines(folder / SIGNALS)]
