"""What runs have logged: stored with an outcome or by itself, cut where it is too much, and read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from ...model.lease import Lease, Settlement
from ...model.logs import MOST_OF_ATTEMPT, JobLogs, LogChunk, StoredChunk, logs_of, overflow
from ...model.newjob import ExportedJob
from ..sql_rows import chunk_of
from .arrays import numbers, texts
from .connection import Connection, Connections, Step
from .rows import settle_values
from .session import Session
from .statements import Statements

Told = Sequence[tuple[Lease, LogChunk]]


def write(session: Session, connections: Connections, told: Told) -> None:
    """As `JobStore.write_logs` says."""
    sql = session.statements
    statement = sql.filled("write_logs", add_chunks=sql("add_chunks").decode())
    ((long, _),) = session.write(Step(statement, _values(told)))[0].rows
    _cut(connections, sql, long)


def settle(
    session: Session,
    connections: Connections,
    before: Sequence[Step],
    settlements: Sequence[Settlement],
    *,
    is_work: bool,
) -> int:
    """Settle runs of which some have logged; how many were held."""
    told = [(each.lease, chunk) for each in settlements for chunk in each.logs]
    sql = session.statements
    parts = {"settle_statement": sql("settle").decode(), "add_chunks": sql("add_chunks").decode()}
    statement = sql.filled("settle_logged", **parts)
    values = {**settle_values(settlements, session.now()), **_values(told)}
    *_, settled = session.write(*before, Step(statement, values, "settle-inside"), is_work=is_work)
    ((count, long),) = settled.rows
    _cut(connections, sql, long)
    return int(count)


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


def _cut(connections: Connections, statements: Statements, jobs: list[int] | None) -> None:
    """Drop the oldest chunks of jobs that have too many. Why apart: few jobs log as much."""

    def work(connection: Connection) -> None:
        with connection.transaction():
            rows = connection.execute(statements("long_logs"), {"jobs": jobs}).fetchall()
            for job, found in groupby(rows, key=lambda row: row[0]):
                connection.execute(statements("cut_logs"), {"job": job, **_cuts(list(found))})

    if jobs:
        connections.attempt(work)


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


def look(session: Session, id: str, after: int) -> JobLogs | None:
    """As `JobStore.logs` says."""
    (found,) = session.read(session.step("logs", id=id, after=after))
    # Why one without an attempt: a job that logged nothing has such a row.
    chunks = [chunk_of(row) for row in found.rows if row[0] is not None]
    return logs_of(chunks, after) if found.rows else None


def of_exported(session: Session, connections: Connections, jobs: list[int]) -> dict[int, list[StoredChunk]]:
    """The chunks of jobs that move to another store, by their numbers."""
    (found,) = connections.run(session.step("export_logs", jobs=jobs))
    logs: defaultdict[int, list[StoredChunk]] = defaultdict(list)
    for job, *chunk in found.rows:
        logs[job].append(chunk_of(chunk))
    return logs


def adopt(connection: Connection, statements: Statements, exported: Sequence[ExportedJob]) -> None:
    """Store what jobs that come from another store have logged there."""
    told = [(job.job.id, start, chunk) for job in exported for start, chunk in enumerate(job.logs)]
    if told:
        values = {
            "log_ids": texts([id for id, _, _ in told]),
            "starts": numbers([start for _, start, _ in told]),
            "attempts": numbers([chunk.attempt for _, _, chunk in told]),
            **_columns([chunk for _, _, chunk in told]),
        }
        connection.execute(statements("adopt_logs"), values)
