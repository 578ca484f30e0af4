"""The begin and the end of a run, and a retry by hand: what they make of a job in memory."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ...errors import DuplicateError
from ...model.job import KEPT_HISTORY, TRANSITIONS, Attempt, JobStatus, Move, instant
from ...model.lease import UNCOUNTED, WORKER_LOST, Lease, Outcome, Rescued
from ...model.logs import LogChunk, StoredChunk, bounded
from ...model.newjob import NewPayload
from ...model.unique import retry_refusal
from .durable import begin_anew, go_on, suspend
from .ledger import Ledger
from .record import Record

_TELLING = frozenset({Move.FAIL, Move.RETRY, Move.RESCUE})
"""A run that ends so has an error to tell of, even where it ends the job as cancelled."""


def begin_run(ledger: Ledger, record: Record, started_at: float, now: float) -> None:
    """Let a job that is leased run."""
    record.attempts += 1
    record.runs += 1
    record.started_at = started_at
    record.progress = None
    record.is_cancel_asked = False
    ledger.move(record, Move.BEGIN, now)


def end_run(ledger: Ledger, record: Record, outcome: Outcome, now: float) -> None:
    """What every end of a run has in common; a request to cancel wins over what it came to."""
    move = Move.CANCEL if record.is_cancel_asked else outcome.move
    tells = outcome.move in _TELLING or (outcome.move is Move.CANCEL and not record.is_cancel_asked)
    if outcome.move in UNCOUNTED:
        record.attempts -= 1
        record.runs -= 1
    else:
        record.error = outcome.error if tells else None
        _remember(record, now)
    record.progress = outcome.progress or record.progress
    if move is Move.SUCCEED:
        record.result = outcome.result
    if move in (Move.RETRY, Move.SNOOZE):
        record.run_at = now + outcome.delay
    elif move in (Move.SLEEP, Move.WAIT):
        record.run_at = suspend(record, outcome, now)
    if outcome.cools:
        ledger.gates.cool(record.new.type, now + outcome.cools)
    ledger.move(record, move, now)
    if move is Move.WAIT:
        go_on(ledger, record, now)


def keep_logs(record: Record, lease: Lease, chunks: Iterable[LogChunk]) -> None:
    """Add what the run logged, unless it was told before."""
    number = record.runs + (record.status is JobStatus.QUEUED)
    for chunk in chunks:
        token, start = record.last_log
        if token != lease.token or start < chunk.start:
            record.last_log = (lease.token, chunk.start)
            stored = StoredChunk(
                attempt=number, cut=chunk.cut, count=chunk.count, size=chunk.size, lines=chunk.lines
            )
            record.logs = tuple(bounded((*record.logs, stored)))


def rescue(ledger: Ledger, limit: int, now: float) -> list[Rescued]:
    """As `JobStore.rescue` says."""
    lost = [record for record in ledger.leased.values() if record.lease_until <= now]
    lost.sort(key=lambda record: (record.lease_until, record.number))
    for record in lost[:limit]:
        if record.status is JobStatus.QUEUED:
            record.is_suspect = True
            ledger.give_back(record, now)
            continue
        is_last = record.attempts > record.new.max_retries
        move = Move.FAIL if is_last else Move.RESCUE
        end_run(ledger, record, Outcome(move=move, error=WORKER_LOST), now)
    return [
        Rescued(record.new.id, record.worker, record.status, record.new.type, record.attempts)
        for record in lost[:limit]
    ]


def cancel(ledger: Ledger, record: Record, now: float) -> None:
    """Cancel it, or ask for that if it runs."""
    if record.status is JobStatus.RUNNING:
        record.is_cancel_asked = True
        ledger.changes += 1
    elif Move.CANCEL in TRANSITIONS[record.status]:
        ledger.move(record, Move.CANCEL, now)


def revive(
    ledger: Ledger, record: Record | None, renewed: NewPayload | None, now: float, *, from_start: bool
) -> JobStatus | DuplicateError | None:
    """As `JobStore.retry` says of one job."""
    if record is None:
        return None
    found, name = record.status, record.new.unique
    if Move.REVIVE not in TRANSITIONS[found]:
        return found
    waiting = None if name is None else ledger.names[name].waiting
    if waiting is not None:
        return retry_refusal(waiting.new.id, name)
    if renewed is not None:
        record.new = replace(record.new, payload=renewed.payload)
        record.key = renewed.key
    begin_anew(record, from_start=from_start)
    record.attempts = 0
    record.run_at = now
    record.error = record.result = record.progress = None
    record.started_at = record.finished_at = None
    ledger.move(record, Move.REVIVE, now)
    return found


def _remember(record: Record, now: float) -> None:
    attempt = Attempt(
        number=record.runs,
        began_at=instant(record.started_at or 0.0),
        ended_at=instant(now),
        worker=record.worker,
        error=record.error,
    )
    record.history = (*record.history, attempt)[-KEPT_HISTORY:]
