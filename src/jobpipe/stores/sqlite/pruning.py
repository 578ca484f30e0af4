"""Deleting jobs within a transaction: those that finished long ago, and what was kept of names that have none left."""

from __future__ import annotations

import sqlite3

from .statements import sql

_NAMES = ("retire_totals", "forget_lanes", "forget_types")


def prune(cursor: sqlite3.Cursor, keep: float, keep_failed: float | None, limit: int, now: float) -> int:
    """As `JobStore.prune` says."""
    cursor.execute(sql("forget_gates"), (now,))
    cursor.execute(sql("forget_cooling"), (now,))
    failed_before = now - (keep if keep_failed is None else keep_failed)
    values = {"before": now - keep, "failed_before": failed_before, "limit": limit}
    pruned = cursor.execute(sql("prune"), values).rowcount
    for statement in _NAMES if pruned < limit else ():
        cursor.execute(sql(statement))
    return pruned
