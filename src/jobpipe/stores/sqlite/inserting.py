"""Inserts within a transaction: batches, each whole or not at all.

The usual case, all jobs new and room for all, takes one statement for everything. Where that does not hold
it is undone, and each batch is looked at by itself.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any

from ...errors import JobConflictError, QueueFullError
from ...job import JobStatus
from ..base import NewJob, Receipt
from .rows import new_row, text_of
from .statements import sql

Batch = Sequence[NewJob]
Answer = list[Receipt] | JobConflictError | QueueFullError


class Ticket:
    """Batches that wait for somebody with the lock to insert them."""

    __slots__ = ("answers", "batches", "error")

    def __init__(self, batches: list[tuple[Batch, int]]) -> None:
        self.batches = batches
        self.answers: list[Answer] | None = None
        self.error: BaseException | None = None


def insert_all(cursor: sqlite3.Cursor, batches: Sequence[tuple[Batch, int]], now: float) -> list[Answer]:
    """Insert batches, each with the capacity that it has to heed."""
    jobs = [job for batch, _ in batches for job in batch]
    capacities = {capacity for _, capacity in batches}
    needed = Counter(job.queue for job in jobs)
    if not any(_full(cursor, needed, capacity) for capacity in capacities):
        cursor.execute("SAVEPOINT together")
        rows = [new_row(job, now) for job in jobs]
        if _write(cursor, rows, now) == len(jobs):
            cursor.execute("RELEASE together")
            receipts = (Receipt(row[0], row[3], True) for row in rows)
            return [list(islice(receipts, len(batch))) for batch, _ in batches]
        cursor.execute("ROLLBACK TO together")
        cursor.execute("RELEASE together")
    return [insert_one(cursor, batch, capacity, now) for batch, capacity in batches]


def _write(cursor: sqlite3.Cursor, rows: list[tuple[Any, ...]], now: float) -> int:
    """Insert the rows whose ids are new; how many it were."""
    return cursor.execute(sql("insert"), {"jobs": text_of(rows), "now": now}).rowcount


def insert_one(cursor: sqlite3.Cursor, batch: Batch, capacity: int, now: float) -> Answer:
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
            if found[0] != job.fingerprint:
                return JobConflictError(job.id)
            known[job.id] = JobStatus(found[1])
    new = [job for job in batch if job.id not in known]
    full = _full(cursor, Counter(job.queue for job in new), capacity)
    if full is not None:
        return full
    rows = {job.id: new_row(job, now) for job in new}
    _write(cursor, list(rows.values()), now)
    return [
        Receipt(job.id, known[job.id], False) if job.id in known else Receipt(job.id, rows[job.id][3], True)
        for job in batch
    ]


def _full(cursor: sqlite3.Cursor, needed: Counter[str], capacity: int) -> QueueFullError | None:
    """The error of the first queue that has no room for so many more."""
    if capacity:
        for queue, count in needed.items():
            (waiting,) = cursor.execute(sql("waiting"), (queue,)).fetchone()
            if waiting + count > capacity:
                return QueueFullError(queue, waiting=waiting, needed=count, capacity=capacity)
    return None
