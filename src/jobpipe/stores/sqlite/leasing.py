"""What becomes of jobs that are leased, within a transaction: begun, extended, settled, released or rescued."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...failpoints import reach
from ...model.job import KEPT_HISTORY, JobStatus, Progress
from ...model.lease import WORKER_LOST, Lease, LeaseState, Rescued, Settlement
from ...model.logs import MOST_OF_ATTEMPT, LogChunk, overflow
from ..sql_rows import text_of
from . import durable
from .rows import settled_row
from .statements import sql
from .uniques import let_in

_LOST = text_of(WORKER_LOST)
_LEASE_STATE = (LeaseState.HELD, LeaseState.CANCELLING)
"""By the column is_cancelling."""


def begin(
    cursor: sqlite3.Cursor, leases: Sequence[Lease], started_at: Sequence[float], now: float
) -> list[LeaseState]:
    told = [(lease.id, lease.token, at or now) for lease, at in zip(leases, started_at, strict=True)]
    cursor.execute(sql("expire_late"), {"told": text_of(told), "now": now})
    cursor.execute(sql("begin"), (text_of(told),))
    held = [cursor.execute(sql("held"), (lease.id, lease.token)).fetchone() for lease in leases]
    return [_LEASE_STATE[row[0]] if row else LeaseState.LOST for row in held]


def extend(cursor: sqlite3.Cursor, now: float, leases: Sequence[Lease], seconds: float) -> list[LeaseState]:
    states = []
    for lease in leases:
        values = {"id": lease.id, "token": lease.token, "until": now + seconds}
        found = cursor.execute(sql("extend"), values).fetchall()
        states.append(_LEASE_STATE[found[0][0]] if found else LeaseState.LOST)
    return states


def progress(cursor: sqlite3.Cursor, now: float, reports: Sequence[tuple[Lease, Progress]]) -> None:
    values = [{"id": lease.id, "token": lease.token, "progress": text_of(told)} for lease, told in reports]
    cursor.executemany(sql("progress"), values)


def write_logs(cursor: sqlite3.Cursor, now: float, chunks: Sequence[tuple[Lease, LogChunk]]) -> None:
    told = [
        (lease.id, lease.token, chunk.start, chunk.cut, chunk.count, chunk.size, chunk.lines)
        for lease, chunk in chunks
    ]
    written = {job for (job,) in cursor.execute(sql("write_logs"), (text_of(told),))}
    for (job,) in cursor.execute(sql("long_logs"), (text_of(list(written)), MOST_OF_ATTEMPT)).fetchall():
        _cut_logs(cursor, job)


def _cut_logs(cursor: sqlite3.Cursor, job: int) -> None:
    """Drop the oldest chunks of a job that has too many; the next one counts their lines as cut."""
    rows = cursor.execute(sql("log_sizes"), (job,)).fetchall()
    dropped = overflow([(attempt, size) for attempt, size, *_ in rows])
    cut = 0
    for place, (_, _, number, lines) in enumerate(rows):
        if place in dropped:
            cursor.execute(sql("drop_log"), (number,))
            cut += lines
        elif cut:
            cursor.execute(sql("add_cut"), (cut, number))
            cut = 0


def settle(cursor: sqlite3.Cursor, settlements: Sequence[Settlement], now: float) -> list[bool]:
    if any(each.logs for each in settlements):
        write_logs(cursor, now, [(each.lease, chunk) for each in settlements for chunk in each.logs])
    told = text_of(list(map(settled_row, settlements)))
    values = {"settlements": told, "now": now, "at": f"{now:.6f}", "kept": KEPT_HISTORY}
    _cool(cursor, settlements, now)
    suspending = [each for each in settlements if each.outcome.name is not None]
    suspended = durable.suspend(cursor, suspending, now) if suspending else ()
    recorded = cursor.execute(sql("settle"), values).rowcount
    if suspended:
        durable.go_on(cursor, suspended, now)
    cursor.execute(sql("leave_gates"))
    cursor.execute(sql("clear_suspects"), (told,))
    let_in(cursor, [each.lease.id for each in settlements])
    reach("settle-inside")
    if recorded == len(settlements):
        return [True] * recorded
    # Some were settled before, or lost: those that still have this token are, or were, settled by it.
    found = [cursor.execute(sql("token"), (each.lease.id,)).fetchone() for each in settlements]
    return [
        row is not None and row[0] == each.lease.token for row, each in zip(found, settlements, strict=True)
    ]


def _cool(cursor: sqlite3.Cursor, settlements: Sequence[Settlement], now: float) -> None:
    for each in settlements:
        if each.outcome.cools:
            until = now + each.outcome.cools
            cursor.execute(sql("cool"), {"id": each.lease.id, "token": each.lease.token, "until": until})


def release(
    cursor: sqlite3.Cursor, leases: Sequence[Lease], keys: Sequence[str | None], now: float
) -> list[bool]:
    released = []
    for lease, key in zip(leases, keys or [None] * len(leases), strict=True):
        values = {"id": lease.id, "token": lease.token, "now": now, "key": key}
        released.append(cursor.execute(sql("release"), values).rowcount == 1)
    let_in(cursor, [lease.id for lease in leases])
    return released


def rescue(cursor: sqlite3.Cursor, limit: int, now: float) -> list[Rescued]:
    rescued = []
    found = cursor.execute(sql("expired"), {"now": now, "limit": limit}).fetchall()
    for seq, id, worker, status, type, attempts in found:
        if status == JobStatus.QUEUED:
            cursor.execute(sql("lose_ahead"), (seq,))
            rescued.append(Rescued(id, worker, JobStatus.QUEUED, type, attempts))
            continue
        values = {"seq": seq, "now": now, "error": _LOST, "kept": KEPT_HISTORY}
        ((status,),) = cursor.execute(sql("rescue"), values).fetchall()
        rescued.append(Rescued(id, worker, JobStatus(status), type, attempts))
    let_in(cursor, [each.id for each in rescued])
    reach("rescue-inside")
    return rescued
