"""Steps, sleeps, waits and signals of jobs, within a transaction.

What runs record is under their lease. A suspension is recorded before the settlement that it comes with, while the lease is held.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from ...errors import LeaseLostError
from ...model.durable import (
    DurableState,
    JobSignal,
    Received,
    ReceivedKind,
    SignalAnswer,
    Step,
    answer_signal,
    name_is_used,
)
from ...model.job import Move
from ...model.lease import Lease, Settlement
from ..sql_rows import durable_states, text_of
from ..stored import status_of
from .statements import sql


def write_step(cursor: sqlite3.Cursor, lease: Lease, step: Step) -> bool:
    """Record it, unless it is; False if the lease is not held."""
    return _insert_step(cursor, lease, step) or _leased(cursor, lease) is not None


def write_step_once(cursor: sqlite3.Cursor, lease: Lease, step: Step) -> None:
    """As `DurableStore.write_step_in` says."""
    if not _insert_step(cursor, lease, step):
        raise LeaseLostError(lease.id) if _leased(cursor, lease) is None else name_is_used(step.name)


def _insert_step(cursor: sqlite3.Cursor, lease: Lease, step: Step) -> bool:
    # Why not by name, as below: this is what a step of a job waits for.
    values = (step.name, step.began_at, step.ended_at, step.result.decode(), lease.id, lease.token)
    return cursor.execute(sql("write_step"), values).rowcount == 1


def receive(cursor: sqlite3.Cursor, now: float, lease: Lease, name: str) -> Received:
    job = _leased(cursor, lease)
    if job is None:
        return Received(ReceivedKind.LOST)
    found = cursor.execute(sql("use_signal"), (job, name)).fetchall()
    if found:
        return Received(ReceivedKind.SIGNAL, found[0][0].encode())
    is_timed_out = cursor.execute(sql("time_out"), {"job": job, "name": name, "now": now}).rowcount
    return Received(ReceivedKind.TIMED_OUT if is_timed_out else ReceivedKind.NOTHING)


def send(cursor: sqlite3.Cursor, id: str, signal: JobSignal, now: float) -> SignalAnswer | None:
    """As `DurableStore.signal` says."""
    found = cursor.execute(sql("addressee"), {"id": id, "name": signal.name, "now": now}).fetchone()
    if found is None:
        return None
    job, status, known, is_timed_out, kept = found
    answer = answer_signal(
        status_of(status), known, signal.fingerprint, is_timed_out=bool(is_timed_out), kept=kept
    )
    if answer is SignalAnswer.ACCEPTED:
        accepted = replace(signal, sent_at=now, is_used=False)
        cursor.execute(sql("write_signal"), {"job": job, **_values(accepted)})
        cursor.execute(sql("go_on"), {"job": job, "now": now})
    return answer


def _leased(cursor: sqlite3.Cursor, lease: Lease) -> int | None:
    """The seq of the job, if the lease is held."""
    row = cursor.execute(sql("leased"), (lease.id, lease.token)).fetchone()
    return None if row is None else row[0]


# Suspending


class Suspended(NamedTuple):
    """A job whose run ends with a suspension."""

    job: int
    until: float
    move: Move


def suspend(cursor: sqlite3.Cursor, settlements: Iterable[Settlement], now: float) -> list[Suspended]:
    """Record the sleeps and waits of those whose lease is held, and which are not to be cancelled."""
    suspended = []
    for lease, outcome in [(each.lease, each.outcome) for each in settlements]:
        values = {"id": lease.id, "token": lease.token, "move": outcome.move, "name": outcome.name}
        found = cursor.execute(sql("suspend"), {**values, "now": now, "delay": outcome.delay}).fetchall()
        for job, until in found:
            suspended.append(Suspended(job, until, outcome.move))
            if outcome.move is Move.WAIT:
                cursor.execute(sql("replace_waits"), (job, outcome.name))
    return suspended


def go_on(cursor: sqlite3.Cursor, suspended: Iterable[Suspended], now: float) -> None:
    """Once they are settled: let each wait until its suspension is over, or not at all if the signal is there."""
    for job, until, move in suspended:
        cursor.execute(sql("suspended"), (until, job))
        if move is Move.WAIT:
            cursor.execute(sql("go_on"), {"job": job, "now": now})


def begin_anew(cursor: sqlite3.Cursor, id: str, *, from_start: bool) -> None:
    """What a retry by hand makes of it."""
    (job,) = cursor.execute(sql("seq"), (id,)).fetchone()
    cursor.execute(sql("forget_suspensions"), (job, from_start))
    if from_start:
        cursor.execute(sql("forget_steps"), (job,))
        cursor.execute(sql("forget_signals"), (job,))


# All of a job


def durable(cursor: sqlite3.Cursor, id: str) -> DurableState | None:
    found = cursor.execute(sql("seq"), (id,)).fetchone()
    return None if found is None else states(cursor, found).get(found[0], DurableState())


def states(cursor: sqlite3.Cursor, jobs: Sequence[int]) -> dict[int, DurableState]:
    """By seq, of those of which anything is recorded."""
    asked = (text_of(jobs),)
    found = (cursor.execute(sql(name), asked).fetchall() for name in ("steps", "suspensions", "signals"))
    return durable_states(*found)


def adopt(cursor: sqlite3.Cursor, id: str, state: DurableState) -> None:
    """Record all of it, of a job that comes from another store."""
    (job,) = cursor.execute(sql("seq"), (id,)).fetchone()
    suspensions = [
        *({**asdict(sleep), "move": Move.SLEEP, "is_timed_out": False} for sleep in state.sleeps),
        *({**asdict(wait), "move": Move.WAIT} for wait in state.waits),
    ]
    cursor.executemany(sql("adopt_step"), [{"job": job, **_values(step)} for step in state.steps])
    cursor.executemany(sql("adopt_suspension"), [{"job": job, **each} for each in suspensions])
    cursor.executemany(sql("write_signal"), [{"job": job, **_values(signal)} for signal in state.signals])


def _values(recorded: Struct) -> dict[str, Any]:
    """Its columns; JSON as text, so that others can read it, too."""
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in asdict(recorded).items()
    }
