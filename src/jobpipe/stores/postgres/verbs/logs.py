"""What runs have logged: stored with an outcome or by itself, cut where it is too much, and read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from ....model.lease import Lease
from ....model.logs import MOST_OF_ATTEMPT, JobLogs, LogChunk, StoredChunk, logs_of, overflow
from ....model.newjob import ExportedJob
from ...sql_rows import chunk_of
from ..rows import numbers, texts
from ..session import Session
from ..verb import Conversation, Step, Verb, run, transact

Told = Sequence[tuple[Lease, LogChunk]]


def write_logs(session: Session, chunks: Told) -> Verb[None]:
    if not chunks:
        return
    parts = {"add_chunks": session.statements("add_chunks").decode()}
    (written,) = yield from session.write(session.step("write_logs", parts, **_values(chunks)))
    ((long, _),) = written.rows
    yield from cut(session, long)


def settle_step(session: Session, told: Told, values: Mapping[str, Any]) -> Step:
    """Settle runs of which some have logged; it brings how many were held, and which jobs have too many chunks."""
    sql = session.statements
    parts = {"settle_statement": sql("settle").decode(), "add_chunks": sql("add_chunks").decode()}
    return session.step("settle_logged", parts, **values, **_values(told))


def _values(told: Told) -> dict[str, Any]:
    """The parameters of write_logs.sql and settle_logged.sql: the chunks, and how much is surely not too much."""
    return {
        "log_ids": texts([lease.id for lease, _ in told]),
        "log_tokens": texts([lease.token for lease, _ in told]),
        "starts": numbers([chunk.start for _, chunk in told]),
        "most": MOST_OF_ATTEMPT,
        **_columns([chunk for _, chunk in told]),
    }


def _columns(chunks: Sequence[LogChunk] | Sequence[StoredChunk]) -> dict[str, str]:
    return {
        "cuts": numbers([chunk.cut for chunk in chunks]),
        "counts": numbers([chunk.count for chunk in chunks]),
        "sizes": numbers([chunk.size for chunk in chunks]),
        "lines": texts([chunk.lines for chunk in chunks]),
    }


def cut(session: Session, jobs: list[int] | None) -> Verb[None]:
    """Drop the oldest chunks of jobs that have too many. Why apart: few jobs log as much."""
    if jobs:
        yield from transact(partial(cut_steps, session, jobs))


def cut_steps(session: Session, jobs: list[int]) -> Conversation[None]:
    """The same, within a transaction."""
    rows = (yield session.step("long_logs", jobs=jobs)).rows
    for job, found in groupby(rows, key=lambda row: row[0]):
        yield session.step("cut_logs", job=job, **_cuts(list(found)))


def _cuts(rows: Sequence[Sequence[Any]]) -> dict[str, list[int]]:
    """Of the rows of long_logs.sql for a job: what is dropped, and which ones count how many lines as cut."""
    places = overflow([(attempt, size) for _, attempt, size, *_ in rows])
    dropped: list[int] = []
    cuts: dict[int, int] = {}
    cut = 0
    for place, (*_, number, lines) in enumerate(rows):
        if place in places:
            dropped.append(number)
            cut += lines
        elif cut:
            cuts[number], cut = cut, 0
    return {"dropped": dropped, "next": list(cuts), "cuts": list(cuts.values())}


def logs(session: Session, id: str, after: int = 0) -> Verb[JobLogs | None]:
    (found,) = yield from session.read(session.step("logs", id=id, after=after))
    # Why one without an attempt: a job that logged nothing has such a row.
    chunks = [chunk_of(row) for row in found.rows if row[0] is not None]
    return logs_of(chunks, after) if found.rows else None


def of_exported(session: Session, jobs: list[int]) -> Verb[dict[int, list[StoredChunk]]]:
    """The chunks of jobs that move to another store, by their numbers."""
    (found,) = yield from run(session.step("export_logs", jobs=jobs))
    logs: defaultdict[int, list[StoredChunk]] = defaultdict(list)
    for job, *chunk in found.rows:
        logs[job].append(chunk_of(chunk))
    return logs


def adopt(session: Session, exported: Sequence[ExportedJob]) -> Conversation[None]:
    """Store what jobs that come from another store have logged there."""
    told = [(job.job.id, start, chunk) for job in exported for start, chunk in enumerate(job.logs)]
    if told:
        yield session.step(
            "adopt_logs",
            log_ids=texts([id for id, _, _ in told]),
            starts=numbers([start for _, start, _ in told]),
            attempts=numbers([chunk.attempt for _, _, chunk in told]),
            **_columns([chunk for _, _, chunk in told]),
        )
