"""What happens to jobs with a lease: they are begun, extended, settled, released or rescued; and heartbeats of workers."""

from __future__ import annotations

from collections.abc import Sequence

from ....model.counts import WorkerInfo
from ....model.job import KEPT_HISTORY, JobStatus, Progress
from ....model.lease import WORKER_LOST, Lease, LeaseState, Rescued, Settlement
from ...sql_rows import text_of
from ..rows import numbers, settle_values, texts
from ..session import Session
from ..verb import Conversation, Result, Verb, run
from . import durable, logs

_LOST = text_of(WORKER_LOST)
_LEASE_STATE = (LeaseState.HELD, LeaseState.CANCELLING)
"""By the column is_cancelling."""


def _tokens(leases: Sequence[Lease]) -> dict[str, str]:
    return {"ids": texts([lease.id for lease in leases]), "tokens": texts([lease.token for lease in leases])}


_PATIENCE = 5_000
"""Milliseconds for which jobs that are given back wait for those who have locked them."""


def begin(session: Session, leases: Sequence[Lease], started_at: Sequence[float]) -> Verb[list[LeaseState]]:
    if not leases:
        return []
    step = session.step("begin", **_tokens(leases), started_at=numbers(started_at))
    (held,) = yield from session.write(step)
    states = {(id, token): _LEASE_STATE[is_cancelling] for id, token, is_cancelling, _ in held.rows}
    return [states.get((lease.id, lease.token), LeaseState.LOST) for lease in leases]


def extend(session: Session, leases: Sequence[Lease], seconds: float) -> Verb[list[LeaseState]]:
    (found,) = yield from session.read(session.step("extend", **_tokens(leases), seconds=seconds))
    return [LeaseState.LOST if row[0] is None else _LEASE_STATE[row[0]] for row in found.rows]


def progress(session: Session, reports: Sequence[tuple[Lease, Progress]]) -> Verb[None]:
    told = [text_of(progress) for _, progress in reports]
    tokens = _tokens([lease for lease, _ in reports])
    yield from session.write(session.step("progress", **tokens, progress=told))


def settle(session: Session, settlements: Sequence[Settlement]) -> Verb[list[bool]]:
    if not settlements:
        return []
    told = _Told(session, settlements)
    is_work = any(each.outcome.waits_again for each in settlements)
    results = yield from session.write(*told.steps, is_work=is_work)
    recorded, long = told.read(results)
    yield from logs.cut(session, long)
    if recorded == len(settlements):
        return [True] * recorded
    # Some were settled before, or lost: those that still have this token are, or were, settled by it.
    (found,) = yield from run(told.tokens)
    return told.are_recorded(found)


def settle_guest(session: Session, settlement: Settlement) -> Conversation[bool]:
    """The same of one run, within a transaction."""
    told = _Told(session, [settlement])
    results: list[Result] = []
    for step in told.steps:
        result = yield step
        results.append(result)
    recorded, long = told.read(results)
    if long:
        yield from logs.cut_steps(session, long)
    return bool(recorded) or told.are_recorded((yield told.tokens))[0]


class _Told:
    """Settlements as statements, and what these bring."""

    def __init__(self, session: Session, settlements: Sequence[Settlement]) -> None:
        self._settlements = settlements
        cooling = [each for each in settlements if each.outcome.cools]
        seconds = numbers([each.outcome.cools for each in cooling])
        cool_tokens = _tokens([each.lease for each in cooling])
        cool = [session.step("cool", **cool_tokens, seconds=seconds)] if cooling else []
        suspend, suspended = durable.suspension_steps(session, settlements)
        chunks = [(each.lease, chunk) for each in settlements for chunk in each.logs]
        values = settle_values(settlements)
        settle = logs.settle_step(session, chunks, values) if chunks else session.step("settle", **values)
        self.steps = (*cool, *suspend, settle._replace(mark="settle-inside"), *suspended)
        self.tokens = session.step("tokens", ids=[each.lease.id for each in settlements])
        self._place = len(cool) + len(suspend)
        self._is_logged = bool(chunks)

    def read(self, results: Sequence[Result]) -> tuple[int, list[int] | None]:
        """How many were held, and which jobs have too many logs."""
        settled = results[self._place]
        if not self._is_logged:
            return settled.touched, None
        ((recorded, long),) = settled.rows
        return recorded, long

    def are_recorded(self, found: Result) -> list[bool]:
        """By the rows of tokens.sql."""
        held: dict[str, str] = dict(found.rows)
        return [held.get(each.lease.id) == each.lease.token for each in self._settlements]


def release(session: Session, leases: Sequence[Lease], keys: Sequence[str | None] = ()) -> Verb[list[bool]]:
    if not leases:
        return []
    told = sorted(zip(leases, keys or [None] * len(leases), strict=True), key=lambda each: each[0].id)
    tokens = _tokens([lease for lease, _ in told])
    step = session.step("release", **tokens, keys=[key for _, key in told])
    # Why: a handler that cannot be broken off may have a transaction of its own open, in which it has recorded a step.
    patience = session.step("patience", milliseconds=_PATIENCE)
    _, released = yield from session.write(patience, step, is_work=True)
    found = {(id, token) for id, token in released.rows}
    return [(lease.id, lease.token) in found for lease in leases]


def rescue(session: Session, limit: int = 100) -> Verb[list[Rescued]]:
    step = session.step("rescue", limit=limit, error=_LOST, kept=KEPT_HISTORY)._replace(mark="rescue-inside")
    found, let_in = yield from session.read(step, session.step("let_in"))
    if found.rows or let_in.touched:
        yield from session.tell_work()
    return [Rescued(id, worker, JobStatus(status), *rest) for id, worker, status, *rest in found.rows]


def beat(session: Session, worker: WorkerInfo, seconds: float) -> Verb[None]:
    steps = [session.step("forget", name=worker.name)]
    if seconds > 0:
        steps.append(session.step("beat", name=worker.name, info=text_of(worker), seconds=seconds))
    yield from run(*steps)
