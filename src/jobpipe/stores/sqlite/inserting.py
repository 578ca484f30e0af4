"""Inserts within a transaction: batches, each whole or not at all.

The usual case, all jobs new and room for all, takes one statement for everything. Where that does not hold
it is undone, and each batch is looked at by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from ...errors import JobConflictError
from ...model.admission import Bounds, Lane, Need, need_of, refusal
from ...model.job import JobStatus
from ...model.newjob import Answer, NewJob, Receipt
from ..stored import status_of
from .rows import new_row, text_of
from .statements import sql

Batch = Sequence[NewJob]


def insert_all(cursor: sqlite3.Cursor, batches: Sequence[tuple[Batch, Bounds]], now: float) -> list[Answer]:
    """Insert batches, each with the bounds that it has to heed."""
    jobs = [job for batch, _ in batches for job in batch]
    rows = [new_row(job, now) for job in jobs]
    heeded = {bounds for _, bounds in batches if any(bounds)}
    need, taken = _need(zip(jobs, rows, strict=True)) if heeded else None, _Taken(cursor)
    if need is None or not any(refusal(need, bounds, taken) for bounds in heeded):
        cursor.execute("SAVEPOINT together")
        if _write(cursor, rows, now) == len(jobs):
            cursor.execute("RELEASE together")
            receipts = (Receipt(row[0], row[3], True) for row in rows)
            return [list(islice(receipts, len(batch))) for batch, _ in batches]
        cursor.execute("ROLLBACK TO together")
        cursor.execute("RELEASE together")
    return [insert_one(cursor, batch, bounds, now) for batch, bounds in batches]


def _write(cursor: sqlite3.Cursor, rows: list[tuple[Any, ...]], now: float) -> int:
    """Insert the rows whose ids are new; how many it were."""
    return cursor.execute(sql("insert"), {"jobs": text_of(rows), "now": now}).rowcount


def insert_one(cursor: sqlite3.Cursor, batch: Batch, bounds: Bounds, now: float) -> Answer:
    """Insert one batch, or say why not."""
    seen: set[str] = set()
    for job in batch:
        if job.id in seen:
            return JobConflictError(job.id, "is twice in the batch")
        seen.add(job.id)
    known = {}
    for job in batch:
        found = cursor.execute(sql("known"), (job.id,)).fetchone()
        if found is not None:
            if not job.is_same(found[0]):
                return JobConflictError(job.id)
            known[job.id] = status_of(found[1])
    new = [job for job in batch if job.id not in known]
    rows = {job.id: new_row(job, now) for job in new}
    if any(bounds):
        refused = refusal(_need((job, rows[job.id]) for job in new), bounds, _Taken(cursor))
        if refused is not None:
            return refused
    _write(cursor, list(rows.values()), now)
    return [
        Receipt(job.id, known[job.id], False) if job.id in known else Receipt(job.id, rows[job.id][3], True)
        for job in batch
    ]


def _need(jobs: Iterable[tuple[NewJob, Sequence[Any]]]) -> Need:
    """What new jobs would take, each with its row."""
    return need_of((job, row[3] is JobStatus.QUEUED) for job, row in jobs)


class _Taken:
    """What the jobs take up, as an `Occupancy`."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    def ready(self, queue: str) -> int:
        return self._number("queued", (queue,))

    def scheduled(self) -> int:
        return self._number("scheduled")

    def has_lane(self, lane: Lane) -> bool:
        return bool(self._number("has_lane", lane))

    def lanes(self) -> int:
        return self._number("count_lanes")

    def _number(self, statement: str, values: tuple[str, ...] = ()) -> int:
        (number,) = self._cursor.execute(sql(statement), values).fetchone()
        return int(number)
