"""Logs of a job: what its handlers logged, stored in chunks, and the bounds on them.

A chunk holds lines of one run. Where there are too many, whole chunks are dropped, the oldest first, and their lines are
counted as cut. So the lines of a job are numbered from 1 without gaps, those that were cut included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .job import instant

MOST_OF_ATTEMPT = 65_536
"""Bytes of lines, as they are stored, that are kept of an attempt."""
MOST_OF_JOB = 262_144
"""The same of all attempts of a job together."""
LARGEST_CHUNK = 4_096
"""Bytes of lines in a chunk, unless a single line has more: no more than that is cut too much."""


class LogLine(Struct, frozen=True, kw_only=True, gc=False):
    """Something that was logged by a run."""

    attempt: int
    """Its number in the history of the job."""
    at: datetime
    level: str
    logger: str
    message: str


class JobLogs(Struct, frozen=True):
    """The lines of a job, oldest first, and how many others were cut, at the begin or in between."""

    lines: list[LogLine]
    cut: int
    last: int
    """The number of its last line: to ask for those after it."""


class LogChunk(Struct, frozen=True, kw_only=True, gc=False):
    """Lines of one run that are stored together. The same one told twice is stored once."""

    start: int
    """Lines of the run before it: no other chunk of the run has the same."""
    cut: int
    """Of these, how many were dropped since the chunk before, since there were too many to be stored."""
    count: int
    size: int
    """Of its lines, in bytes."""
    lines: str
    """A JSON array of [at, level, logger, message]."""


class StoredChunk(Struct, frozen=True, kw_only=True, gc=False):
    """A chunk as it is stored."""

    attempt: int
    cut: int
    """Lines that were dropped before it."""
    count: int
    size: int
    lines: str


_Line = tuple[float, str, str, str]
_read = msgspec.json.Decoder(list[_Line]).decode


def logs_of(chunks: Iterable[StoredChunk], after: int = 0) -> JobLogs:
    """What was stored of a job, oldest first; only the lines after that number."""
    lines: list[LogLine] = []
    cut = number = 0
    for chunk in chunks:
        cut += chunk.cut
        number += chunk.cut + chunk.count
        if number > after:
            told = _read(chunk.lines)[-(number - after) :]
            lines += (
                LogLine(attempt=chunk.attempt, at=instant(at), level=level, logger=logger, message=message)
                for at, level, logger, message in told
            )
    return JobLogs(lines, cut, number)


def overflow(chunks: Sequence[tuple[int, int]]) -> set[int]:
    """Which of these chunks of a job, each by its attempt and size, oldest first, are to be dropped.

    Never the newest one, however long: the one after those that are dropped counts their lines.
    """
    of_attempt: Counter[int] = Counter()
    of_job = 0
    dropped = set[int]()
    newest = len(chunks) - 1
    for place, (attempt, size) in reversed(list(enumerate(chunks))):
        of_attempt[attempt] += size
        if of_attempt[attempt] <= MOST_OF_ATTEMPT:
            of_job += size
        if place < newest and (of_attempt[attempt] > MOST_OF_ATTEMPT or of_job > MOST_OF_JOB):
            dropped.add(place)
    return dropped


def bounded(chunks: Sequence[StoredChunk]) -> list[StoredChunk]:
    """The chunks that are kept; the first one after those that are dropped counts their lines as cut."""
    dropped = overflow([(chunk.attempt, chunk.size) for chunk in chunks])
    kept: list[StoredChunk] = []
    cut = 0
    for place, chunk in enumerate(chunks):
        if place in dropped:
            cut += chunk.cut + chunk.count
        else:
            kept.append(replace(chunk, cut=chunk.cut + cut) if cut else chunk)
            cut = 0
    return kept
