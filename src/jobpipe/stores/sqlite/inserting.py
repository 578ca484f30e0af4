"""Inserts within a transaction: batches, each whole or not at all.

The usual case, all jobs new and room for all, takes one statement for everything. Where that does not hold
it is undone, and each batch is looked at by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

from ...model.admission import Bounds, Lane, Plan, admit, need_of, refusal
from ...model.job import JobStatus
from ...model.newjob import Answer, NewJob, Receipt
from ..sql_rows import text_of
from ..stored import status_of
from . import managing, uniques
from .rows import MORE_COLUMNS, PLAIN_ROW, new_row
from .statements import sql

Batch = Sequence[NewJob]


def insert_all(cursor: sqlite3.Cursor, batches: Sequence[tuple[Batch, Bounds]], now: float) -> list[Answer]:
    """Insert batches, each with its bounds."""
    jobs = [job for batch, _ in batches for job in batch]
    if any(job.unique is not None for job in jobs):
        return [insert_one(cursor, batch, bounds, now) for batch, bounds in batches]
    rows = [new_row(job, now) for job in jobs]
    heeded = {bounds for _, bounds in batches if any(bounds)}
    need, taken = need_of(jobs, now) if heeded else None, _Taken(cursor)
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
    statement = _insert(is_plain=all(len(row) == PLAIN_ROW for row in rows))
    return cursor.execute(statement, {"jobs": text_of(rows), "now": now}).rowcount


@cache
def _insert(*, is_plain: bool) -> str:
    """insert.sql, for jobs of which none, or some, have more columns. Why two: each value of a row costs time."""
    more = () if is_plain else MORE_COLUMNS
    return sql("insert").format(
        columns="".join(f", {name}" for name in more),
        values="".join(f", value ->> {PLAIN_ROW + place}" for place in range(len(more))),
    )


def insert_one(cursor: sqlite3.Cursor, batch: Batch, bounds: Bounds, now: float) -> Answer:
    """Insert one batch, or say why not."""
    known: dict[str, JobStatus] = {}

    def fingerprint(id: str) -> str | None:
        found = cursor.execute(sql("known"), (id,)).fetchone()
        if found is None:
            return None
        known[id] = status_of(found[1])
        return str(found[0])

    plan = admit(batch, fingerprint, bounds, _Taken(cursor), now, partial(uniques.named, cursor))
    if not isinstance(plan, Plan):
        return plan
    rows = [new_row(job, now) for job in plan.new]
    _write(cursor, rows, now)
    if any(job.unique is not None for job in batch):
        _carry_out(cursor, plan, now)
        found = {id: managing.status(cursor, id) for id, _ in plan.receipts}
        known |= {id: status for id, status in found.items() if status is not None}
    else:
        known |= {row[0]: row[3] for row in rows}
    return [Receipt(id, known[id], is_new) for id, is_new in plan.receipts]


def _carry_out(cursor: sqlite3.Cursor, plan: Plan, now: float) -> None:
    """What a plan asks for beside the new jobs, which are there already."""
    for id, job in plan.replaced.items():
        uniques.replace(cursor, id, job, now)
    uniques.order_names(cursor, {job.unique for job in plan.new if job.unique is not None})
    managing.cancel(cursor, plan.cancelled, now)


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
