"""Steps, sleeps, waits and signals of jobs in memory. The caller holds the store's lock."""

from __future__ import annotations

from msgspec.structs import replace

from ...model.durable import (
    DurableState,
    JobSignal,
    Received,
    ReceivedKind,
    SignalAnswer,
    Sleep,
    Step,
    Wait,
    answer_signal,
)
from ...model.job import JobStatus, Move
from ...model.lease import Outcome
from .ledger import Ledger
from .record import Durable, Record


def keep_step(record: Record | None, step: Step) -> bool:
    """Record it; False without a record, whose lease is held."""
    if record is None:
        return False
    _of(record).steps.setdefault(step.name, step)
    return True


def suspend(record: Record, outcome: Outcome, now: float) -> float:
    """Record the sleep or the wait with which a run ended; when it is over."""
    own, name, until = _of(record), outcome.name or "", now + outcome.delay
    if outcome.move is Move.SLEEP:
        return own.sleeps.setdefault(name, Sleep(name=name, until=until)).until
    own.waits = {other: each for other, each in own.waits.items() if each.is_timed_out or other == name}
    return own.waits.setdefault(name, Wait(name=name, until=until)).until


def go_on(ledger: Ledger, record: Record, now: float) -> None:
    """Queue a waiting job if the signal that it waits for is there."""
    if record.status is JobStatus.WAITING and record.durable is not None:
        wait = record.durable.look().pending_wait()
        if wait is not None and wait.name in record.durable.signals:
            record.run_at = now
            ledger.move(record, Move.SIGNAL, now)


def receive(record: Record | None, name: str, now: float) -> Received:
    """As `DurableStore.receive` says."""
    if record is None:
        return Received(ReceivedKind.LOST)
    own = record.durable
    if own is not None and name in own.signals:
        own.signals[name] = replace(own.signals[name], is_used=True)
        return Received(ReceivedKind.SIGNAL, own.signals[name].payload)
    if own is not None and _is_timed_out(own, name, now):
        own.waits[name] = replace(own.waits[name], is_timed_out=True)
        return Received(ReceivedKind.TIMED_OUT)
    return Received(ReceivedKind.NOTHING)


def send(ledger: Ledger, record: Record, signal: JobSignal, now: float) -> SignalAnswer:
    """As `DurableStore.signal` says."""
    own = record.durable or Durable()
    known = own.signals.get(signal.name)
    answer = answer_signal(
        record.status,
        None if known is None else known.fingerprint,
        signal.fingerprint,
        is_timed_out=_is_timed_out(own, signal.name, now),
        kept=len(own.signals),
    )
    if answer is SignalAnswer.ACCEPTED:
        record.durable = own
        own.signals[signal.name] = replace(signal, sent_at=now, is_used=False)
        ledger.changes += 1
        go_on(ledger, record, now)
    return answer


def begin_anew(record: Record, *, from_start: bool) -> None:
    """What a retry by hand makes of it."""
    own = record.durable
    if own is not None:
        own.waits = {}
        if from_start:
            own.steps, own.sleeps = {}, {}
            own.signals = {name: each for name, each in own.signals.items() if not each.is_used}
        if own.look() == DurableState():
            record.durable = None


def _is_timed_out(own: Durable, name: str, now: float) -> bool:
    wait = own.waits.get(name)
    return wait is not None and (wait.is_timed_out or wait.until <= now)


def _of(record: Record) -> Durable:
    if record.durable is None:
        record.durable = Durable()
    return record.durable
