"""Deleting finished jobs within a transaction: by id, or those that ended long ago, and what was kept of names without jobs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...model.job import JobStatus
from ..stored import status_of
from .statements import sql

_NAMES = ("retire_totals", "forget_lanes", "forget_types")


def delete(cursor: sqlite3.Cursor, now: float, ids: Sequence[str]) -> list[JobStatus | None]:
    found: list[JobStatus | None] = []
    for id in ids:
        row = cursor.execute(sql("status"), (id,)).fetchone()
        found.append(None if row is None else status_of(row[0]))
        cursor.execute(sql("delete"), (id,))
    return found


def prune(
    cursor: sqlite3.Cursor, now: float, keep: float, limit: int = 1_000, keep_failed: float | None = None
) -> int:
    cursor.execute(sql("forget_gates"), (now,))
    cursor.execute(sql("forget_cooling"), (now,))
    failed_before = now - (keep if keep_failed is None else keep_failed)
    values = {"before": now - keep, "failed_before": failed_before, "limit": limit}
    pruned = cursor.execute(sql("prune"), values).rowcount
    for statement in _NAMES if pruned < limit else ():
        cursor.execute(sql(statement))
    return pruned
