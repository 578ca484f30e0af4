"""What can be read of jobs, queues, limits, events and workers."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec import json

from ...model.counts import MOST_FAILURES, Counts, Failures, Filter, JobEvent, Page, WorkerInfo
from ...model.gate import Limits
from ...model.job import Job, JobStatus
from ...model.logs import JobLogs, logs_of
from ..failures import ERROR_HEAD, error_start, failed_of, failures_of
from ..sql_rows import chunk_of, event_of, worker_of
from ..stored import counts_of, gate_of
from .rows import job_of
from .statements import sql
from .uniques import named

_NEWEST = 2**62

_INDEXES = {
    JobStatus.RUNNING: "INDEXED BY jobs_leased",
    JobStatus.SCHEDULED: "INDEXED BY jobs_due",
    JobStatus.WAITING: "INDEXED BY jobs_waiting",
    JobStatus.FAILED: "INDEXED BY jobs_failed",
    JobStatus.CANCELLED: "INDEXED BY jobs_cancelled",
}
"""Where to find the jobs of a status; the others are found among the newest."""


def get(cursor: sqlite3.Cursor, id: str) -> Job | None:
    row = cursor.execute(sql("get"), (id,)).fetchone()
    return None if row is None else job_of(row)


def logs(cursor: sqlite3.Cursor, id: str, after: int = 0) -> JobLogs | None:
    rows = cursor.execute(sql("logs"), {"id": id, "after": after}).fetchall()
    # Why one without an attempt: a job that logged nothing has such a row.
    return logs_of([chunk_of(row) for row in rows if row[0] is not None], after) if rows else None


def page(cursor: sqlite3.Cursor, filter: Filter, limit: int, before: int | None = None) -> Page:
    statement, values = statement_of(filter)
    rows = cursor.execute(
        statement, {**values, "before": _NEWEST if before is None else before, "limit": limit + 1}
    ).fetchall()
    shown = rows[:limit]
    return Page(list(map(job_of, shown)), shown[-1][0] if len(rows) > limit else None)


def statement_of(filter: Filter) -> tuple[str, dict[str, str]]:
    """The statement, and the values of the filter that it wants."""
    # Why the status as a literal: only so does SQLite see which partial index has all of them.
    status = "" if filter.status is None else f" AND status = '{filter.status.value}'"
    named = {"type": filter.type, "queue": filter.queue, "tag": filter.tag}
    values = {name: value for name, value in named.items() if value is not None}
    filters = status + "".join(f" AND {name} = :{name}" for name in values)
    if filter.error is not None:
        values["error"] = error_start(filter.error)
        filters += " AND substr(error, 1, length(:error)) = :error"
    if filter.tag is not None:
        # Why a cross join: SQLite then goes through the jobs of the tag, whatever else is asked for.
        source, number = "tagged CROSS JOIN jobs ON jobs.seq = tagged.job", "tagged.job"
    else:
        index = "" if filter.status is None else _INDEXES.get(filter.status, "")
        source, number = f"jobs {index}", "seq"
    return sql("page").format(source=source, number=number, filters=filters), values


def counts(cursor: sqlite3.Cursor) -> Counts:
    rows = cursor.execute(sql("tallies")).fetchall()
    return counts_of(rows, (queue for (queue,) in cursor.execute(sql("paused"))))


def failures(cursor: sqlite3.Cursor, limit: int = MOST_FAILURES) -> Failures:
    rows = cursor.execute(sql("failures"), {"head": ERROR_HEAD, "limit": limit + 1})
    return failures_of(map(failed_of, rows), limit)


def ahead(cursor: sqlite3.Cursor, id: str) -> int:
    (count,) = cursor.execute(sql("ahead"), (id,)).fetchone()
    return int(count)


def key_of(cursor: sqlite3.Cursor, id: str) -> str | None:
    row = cursor.execute(sql("key_of"), (id,)).fetchone()
    return None if row is None else row[0]


def running_of(cursor: sqlite3.Cursor, unique: str) -> str | None:
    return named(cursor, unique).running


def limits(
    cursor: sqlite3.Cursor, type: str | None, key: str | None, limit: int, queues: Sequence[str], now: float
) -> Limits:
    values = {"type": type, "key": key, "limit": limit, "now": now}
    gates = [gate_of((*row, json.decode(holders))) for *row, holders in cursor.execute(sql("gates"), values)]
    rows = [(queue, cursor.execute(sql("queue_gate"), {"queue": queue}).fetchone()) for queue in queues]
    of_queues = [
        gate_of(("", queue, next_at if next_at > now else 0.0, running, json.decode(holders)))
        for queue, (next_at, running, holders) in rows
    ]
    return Limits(now, gates, dict(cursor.execute(sql("cooling"), (now,))), of_queues)


def events(cursor: sqlite3.Cursor, after: int, limit: int) -> list[JobEvent]:
    return list(map(event_of, cursor.execute(sql("events"), (after, limit))))


def last_event(cursor: sqlite3.Cursor) -> int:
    (number,) = cursor.execute(sql("last_event")).fetchone()
    return int(number)


def workers(cursor: sqlite3.Cursor, now: float) -> list[WorkerInfo]:
    return list(map(worker_of, cursor.execute(sql("workers"), (now,))))
