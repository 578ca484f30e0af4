"""What can be read of many jobs, and of workers: pages, limits and events."""

from __future__ import annotations

import sqlite3

import msgspec

from ...model.counts import Filter, JobEvent, Page, WorkerInfo
from ...model.gate import Limits
from ...model.job import JobStatus
from ..stored import status_of
from .rows import gate_of, job_of
from .statements import sql

_NEWEST = 2**62

_INDEXES = {
    JobStatus.RUNNING: "INDEXED BY jobs_leased",
    JobStatus.SCHEDULED: "INDEXED BY jobs_due",
    JobStatus.FAILED: "INDEXED BY jobs_failed",
    JobStatus.CANCELLED: "INDEXED BY jobs_cancelled",
}
"""Where to find the jobs of a status; the others are found among the newest."""


def page(cursor: sqlite3.Cursor, filter: Filter, limit: int, before: int | None) -> Page:
    """As `JobStore.page` says."""
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
    if filter.tag is not None:
        # Why a cross join: SQLite then goes through the jobs of the tag, whatever else is asked for.
        source, number = "tagged CROSS JOIN jobs ON jobs.seq = tagged.job", "tagged.job"
    else:
        index = "" if filter.status is None else _INDEXES.get(filter.status, "")
        source, number = f"jobs {index}", "seq"
    return sql("page").format(source=source, number=number, filters=filters), values


def limits(cursor: sqlite3.Cursor, type: str | None, key: str | None, limit: int, now: float) -> Limits:
    """As `JobStore.limits` says."""
    values = {"type": type, "key": key, "limit": limit, "now": now}
    gates = list(map(gate_of, cursor.execute(sql("gates"), values)))
    return Limits(now, gates, dict(cursor.execute(sql("cooling"), (now,))))


def events(cursor: sqlite3.Cursor, after: int, limit: int) -> list[JobEvent]:
    """As `WatchStore.events` says."""
    return [
        JobEvent(number, id, type, queue, status_of(status), attempts)
        for number, id, type, queue, status, attempts in cursor.execute(sql("events"), (after, limit))
    ]


def workers(cursor: sqlite3.Cursor, now: float) -> list[WorkerInfo]:
    """As `WatchStore.workers` says."""
    return [
        msgspec.structs.replace(msgspec.json.decode(info, type=WorkerInfo), seen_at=seen_at)
        for info, seen_at in cursor.execute(sql("workers"), (now,))
    ]
