"""The begin and the end of a run: what they make of a job in memory."""

from __future__ import annotations

from ...model.job import KEPT_HISTORY, Attempt, Move, instant
from ...model.lease import Outcome
from .ledger import Ledger
from .record import Record

_UNCOUNTED = frozenset({Move.SNOOZE, Move.RELEASE})
"""A run that ends so was none: its attempt is given back, and the history does not know it."""
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
    if outcome.move in _UNCOUNTED:
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
    if outcome.cools:
        ledger.gates.cool(record.new.type, now + outcome.cools)
    ledger.move(record, move, now)


def _remember(record: Record, now: float) -> None:
    attempt = Attempt(
        number=record.runs,
        began_at=instant(record.started_at or 0.0),
        ended_at=instant(now),
        worker=record.worker,
        error=record.error,
    )
    record.history = (*record.history, attempt)[-KEPT_HISTORY:]
