"""Cancel, retry and delete within a transaction: each job as its status asks for, and the status in which it was found.

Also pruning, pausing queues, and signs of life of workers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from ...errors import DuplicateError
from ...model.counts import WorkerInfo
from ...model.job import TRANSITIONS, JobStatus, Move
from ...model.newjob import NewPayload
from ...model.unique import retry_refusal
from ..stored import status_of
from . import durable, uniques
from .statements import sql

_CANCEL = {
    JobStatus.SCHEDULED: "cancel_waiting",
    JobStatus.WAITING: "cancel_waiting",
    JobStatus.QUEUED: "cancel_waiting",
    JobStatus.RUNNING: "cancel_running",
}
_FORGET_NAMES = ("retire_totals", "forget_lanes", "forget_types")


def status(cursor: sqlite3.Cursor, id: str) -> JobStatus | None:
    """None for an unknown job."""
    row = cursor.execute(sql("status"), (id,)).fetchone()
    return None if row is None else status_of(row[0])


def beat(cursor: sqlite3.Cursor, now: float, worker: WorkerInfo, seconds: float) -> None:
    cursor.execute(sql("forget"), {"name": worker.name, "now": now})
    if seconds > 0:
        values = {"name": worker.name, "info": msgspec.json.encode(worker), "now": now}
        cursor.execute(sql("beat"), {**values, "until": now + seconds})


def cancel(cursor: sqlite3.Cursor, ids: Sequence[str], now: float) -> list[JobStatus | None]:
    statuses: list[JobStatus | None] = []
    for id in ids:
        found = status(cursor, id)
        statuses.append(found)
        if found in _CANCEL:
            cursor.execute(sql(_CANCEL[found]), {"id": id, "now": now})
    uniques.let_in(cursor, ids)
    return statuses


def retry(
    cursor: sqlite3.Cursor, id: str, renewed: NewPayload | None, now: float, *, from_start: bool
) -> JobStatus | DuplicateError | None:
    found = status(cursor, id)
    if found is None or Move.REVIVE not in TRANSITIONS[found]:
        return found
    names = uniques.names_of(cursor, [id])
    for name in names:
        waiting = uniques.named(cursor, name).waiting
        if waiting is not None:
            return retry_refusal(waiting.id, name)
    values = (None, None) if renewed is None else (renewed.payload.decode(), renewed.key)
    cursor.execute(sql("revive"), {"id": id, "now": now, "payload": values[0], "key": values[1]})
    durable.begin_anew(cursor, id, from_start=from_start)
    if names:
        uniques.order_names(cursor, names)
    return found


def delete(cursor: sqlite3.Cursor, now: float, ids: Sequence[str]) -> list[JobStatus | None]:
    found: list[JobStatus | None] = []
    for id in ids:
        found.append(status(cursor, id))
        cursor.execute(sql("delete"), (id,))
    return found


def prune(
    cursor: sqlite3.Cursor, now: float, keep: float, limit: int = 1_000, keep_failed: float | None = None
) -> int:
    """Delete what ended long ago, and what was kept of names without jobs."""
    cursor.execute(sql("forget_gates"), (now,))
    cursor.execute(sql("forget_cooling"), (now,))
    failed_before = now - (keep if keep_failed is None else keep_failed)
    values = {"before": now - keep, "failed_before": failed_before, "limit": limit}
    pruned = cursor.execute(sql("prune"), values).rowcount
    for statement in _FORGET_NAMES if pruned < limit else ():
        cursor.execute(sql(statement))
    return pruned


def pause(cursor: sqlite3.Cursor, now: float, queue: str) -> None:
    cursor.execute(sql("pause"), (queue,))


def resume(cursor: sqlite3.Cursor, now: float, queue: str) -> None:
    cursor.execute(sql("resume"), (queue,))
    cursor.execute(sql("look_again"))
