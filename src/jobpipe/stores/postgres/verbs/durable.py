"""Steps, sleeps, waits and signals of jobs.

What runs record is under their lease, which the statements lock. A suspension is recorded before the settlement that it comes with,
while the lease is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import asdict, replace

from ....model.durable import (
    DurableState,
    JobSignal,
    Received,
    ReceivedKind,
    SignalAnswer,
    answer_signal,
)
from ....model.durable import Step as JobStep
from ....model.job import Move
from ....model.lease import Lease, Settlement
from ....model.newjob import ExportedJob
from ...sql_rows import durable_states
from ...stored import status_of
from ..rows import numbers, texts
from ..session import Session
from ..verb import Conversation, Step, Verb, run, transact


def write_steps(session: Session, steps: Sequence[tuple[Lease, JobStep]]) -> Verb[list[bool]]:
    session.lent.refuse_settled()
    if not steps:
        return []
    # Why no listeners are told: no job has changed.
    if len(steps) == 1:
        ((lease, step),) = steps
        (written,) = yield from run(step_of(session, lease, step))
        if written.touched:
            return [True]
        (held,) = yield from run(leased(session, lease))
        return [bool(held.rows)]
    (held,) = yield from run(
        session.step(
            "write_steps",
            ids=texts([lease.id for lease, _ in steps]),
            tokens=texts([lease.token for lease, _ in steps]),
            **_step_values([step for _, step in steps]),
        )
    )
    tokens = {(id, token) for id, token in held.rows}
    return [(lease.id, lease.token) in tokens for lease, _ in steps]


def step_of(session: Session, lease: Lease, step: JobStep) -> Step:
    """Record a step: it touches nothing if one of its name is recorded, or the lease is not held."""
    values = asdict(step) | {"result": step.result.decode()}
    return session.step("write_step", id=lease.id, token=lease.token, **values)


def leased(session: Session, lease: Lease) -> Step:
    """It brings the job, if the lease is held."""
    return session.step("leased", id=lease.id, token=lease.token)


def _step_values(steps: Sequence[JobStep]) -> dict[str, str]:
    return {
        "names": texts([step.name for step in steps]),
        "began_at": numbers([step.began_at for step in steps]),
        "ended_at": numbers([step.ended_at for step in steps]),
        "results": texts([step.result.decode() for step in steps]),
    }


def receive(session: Session, lease: Lease, name: str) -> Verb[Received]:
    def work() -> Conversation[Received]:
        held = (yield leased(session, lease)).rows
        if not held:
            return Received(ReceivedKind.LOST)
        of_job = {"job": held[0][0], "name": name}
        found = (yield session.step("use_signal", **of_job)).rows
        if found:
            return Received(ReceivedKind.SIGNAL, found[0][0].encode())
        is_timed_out = (yield session.step("time_out", **of_job)).touched
        return Received(ReceivedKind.TIMED_OUT if is_timed_out else ReceivedKind.NOTHING)

    session.lent.refuse_settled()
    return (yield from transact(work))


def signal(session: Session, id: str, signal: JobSignal) -> Verb[SignalAnswer | None]:
    session.lent.refuse_own([id])
    answer = yield from session.converse(partial(_send, session, id, signal))
    if answer is SignalAnswer.ACCEPTED:
        yield from session.tell_work()
    return answer


def _send(session: Session, id: str, signal: JobSignal) -> Conversation[SignalAnswer | None]:
    yield session.patience()
    found = (yield session.step("addressee", id=id)).rows
    if not found:
        return None
    job, status = found[0]
    # Why asked only now: what is seen was committed before the job was locked.
    ((now, known, is_timed_out, kept),) = (yield session.step("signalled", job=job, name=signal.name)).rows
    answer = answer_signal(status_of(status), known, signal.fingerprint, is_timed_out=is_timed_out, kept=kept)
    if answer is SignalAnswer.ACCEPTED:
        yield _signals_step(session, [(id, replace(signal, sent_at=now, is_used=False))])
        yield session.step("go_on", job=job)
    return answer


def _signals_step(session: Session, signals: Sequence[tuple[str, JobSignal]]) -> Step:
    told = [signal for _, signal in signals]
    return session.step(
        "write_signals",
        ids=texts([id for id, _ in signals]),
        names=texts([signal.name for signal in told]),
        payloads=texts([signal.payload.decode() for signal in told]),
        fingerprints=texts([signal.fingerprint for signal in told]),
        sent_at=numbers([signal.sent_at for signal in told]),
        are_used=[signal.is_used for signal in told],
    )


# Suspending


def suspension_steps(session: Session, settlements: Sequence[Settlement]) -> tuple[list[Step], list[Step]]:
    """What comes before and after settlements of which some suspend their jobs; nothing if none does."""
    if all(each.outcome.name is None for each in settlements):
        return [], []
    values = {
        "ids": texts([each.lease.id for each in settlements]),
        "tokens": texts([each.lease.token for each in settlements]),
        "moves": texts([each.outcome.move for each in settlements]),
        "names": texts([each.outcome.name for each in settlements]),
    }
    delays = numbers([each.outcome.delay for each in settlements])
    return [session.step("suspend", **values, delays=delays)], [session.step("suspended", **values)]


# All of a job


def durable(session: Session, id: str) -> Verb[DurableState | None]:
    known, *found = yield from run(session.step("known", ids=[id]), *_state_steps(session, [id]))
    return durable_states(*(each.rows for each in found)).get(id, DurableState()) if known.rows else None


def of_exported(session: Session, ids: Sequence[str]) -> Verb[dict[str, DurableState]]:
    """What is recorded of jobs that move to another store, of those of which anything is."""
    found = yield from run(*_state_steps(session, ids))
    return durable_states(*(each.rows for each in found))


def _state_steps(session: Session, ids: Sequence[str]) -> list[Step]:
    return [session.step(name, ids=list(ids)) for name in ("steps", "suspensions", "signals")]


def adopt(session: Session, exported: Sequence[ExportedJob]) -> Conversation[None]:
    """Record what is recorded of jobs that come from another store."""
    states = [(job.job.id, job.durable) for job in exported if job.durable is not None]
    steps = [(id, step) for id, state in states for step in state.steps]
    signals = [(id, signal) for id, state in states for signal in state.signals]
    suspensions = [
        (id, Move.SLEEP, sleep.name, sleep.until, False) for id, state in states for sleep in state.sleeps
    ]
    suspensions += [
        (id, Move.WAIT, wait.name, wait.until, wait.is_timed_out)
        for id, state in states
        for wait in state.waits
    ]
    if steps:
        values = _step_values([step for _, step in steps])
        yield session.step("adopt_steps", ids=texts([id for id, _ in steps]), **values)
    if suspensions:
        ids, moves, names, until, are_timed_out = zip(*suspensions, strict=True)
        yield session.step(
            "adopt_suspensions",
            ids=texts(ids),
            moves=texts(moves),
            names=texts(names),
            until=numbers(until),
            are_timed_out=list(are_timed_out),
        )
    if signals:
        yield _signals_step(session, signals)
