"""Jobs that come from another store, or go to one."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from ...errors import JobConflictError
from ...model.job import JobStatus
from ...model.logs import StoredChunk
from ...model.newjob import ExportedJob
from ...model.unique import refuse_second
from ..sql_rows import chunk_of, exported_of, text_of
from ..stored import ended_of
from . import durable, uniques
from .rows import PLAIN_ROW, history_of, more_values, new_row
from .statements import sql


def adopt(cursor: sqlite3.Cursor, exported: Sequence[ExportedJob], now: float) -> int:
    """As `TransferStore.adopt` says, within a transaction that is undone if it raises."""
    names = {job.job.unique for job in exported if job.job.unique is not None}
    if names:
        _refuse_second(cursor, exported)
    rows = [_adopted_row(job, now) for job in exported]
    new = [job for job in exported if (job.logs or job.durable) and not _has(cursor, job)]
    inserted = cursor.execute(sql("adopt"), {"jobs": text_of(rows)}).rowcount
    for job in exported if inserted < len(exported) else ():
        (fingerprint, _) = cursor.execute(sql("known"), (job.job.id,)).fetchone()
        if not job.job.is_same(fingerprint):
            raise JobConflictError(job.job.id)
    if names:
        uniques.order_names(cursor, names)
    logs = [
        {"id": job.job.id, "start": start, **asdict(chunk)}
        for job in new
        for start, chunk in enumerate(job.logs)
    ]
    cursor.executemany(sql("adopt_log"), logs)
    for job in new:
        if job.durable is not None:
            durable.adopt(cursor, job.job.id, job.durable)
    return inserted


def _refuse_second(cursor: sqlite3.Cursor, exported: Sequence[ExportedJob]) -> None:
    refuse_second([job for job in exported if not _has(cursor, job)], partial(uniques.named, cursor))


def _has(cursor: sqlite3.Cursor, job: ExportedJob) -> bool:
    return cursor.execute(sql("status"), (job.job.id,)).fetchone() is not None


def _adopted_row(job: ExportedJob, now: float) -> tuple[Any, ...]:
    """An element of adopt.sql's `:jobs`."""
    # Why without max_wait: it bounds the first run alone, and this may be another.
    id, type, queue, status, max_retries, priority, run_at, deadline, fingerprint, payload, key = new_row(
        replace(job.job, max_wait=None), now
    )[:PLAIN_ROW]
    if job.is_waiting and status is JobStatus.SCHEDULED:
        status = JobStatus.WAITING
    return (
        *(id, type, queue, status, max_retries, priority, run_at, deadline, fingerprint, key),
        *(job.attempts, job.runs, job.created_at, job.started_at, job.error, job.progress),
        *([ended_of(attempt) for attempt in job.history], payload, *more_values(job.job, now)),
    )


def export(cursor: sqlite3.Cursor, limit: int, after: int = 0) -> list[ExportedJob]:
    rows = cursor.execute(sql("export"), (after, limit)).fetchall()
    logs: defaultdict[int, list[StoredChunk]] = defaultdict(list)
    for job, *chunk in cursor.execute(sql("export_logs"), (text_of([row[0] for row in rows]),)):
        logs[job].append(chunk_of(chunk))
    states = durable.states(cursor, [row[0] for row in rows])
    return [
        replace(
            _exported_of(row, logs[row[0]]),
            is_waiting=status == JobStatus.WAITING,
            durable=states.get(row[0]),
        )
        for *row, status in rows
    ]


def discard(cursor: sqlite3.Cursor, now: float, ids: Sequence[str]) -> int:
    names = uniques.names_of(cursor, ids)
    told = (text_of(list(ids)),)
    cursor.execute(sql("forget_waits"), told)
    discarded = cursor.execute(sql("discard"), told).rowcount
    uniques.order_names(cursor, names)
    return discarded


def _exported_of(row: Sequence[Any], logs: Sequence[StoredChunk]) -> ExportedJob:
    *_, history, _, _, _, _, tags, _ = row
    return exported_of(
        row, history=history_of(history), tags=() if tags is None else msgspec.json.decode(tags), logs=logs
    )
