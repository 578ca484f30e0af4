"""Cancel, retry and delete: what is done to each job as its status asks for, and the status in which it was found.

Also the one transaction in which a tick inserts its job and the schedule goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from psycopg import errors as pg

from ...errors import DuplicateError, StoreAwayError, StoreError
from ...failpoints import reach
from ...model.admission import Bounds
from ...model.job import FINISHED, WAITING, JobStatus, Move, sources
from ...model.newjob import Answer, NewJob, NewPayload
from ...model.unique import retry_refusal
from ..stored import status_of
from .connection import Result
from .inserting import Conversation, insert_steps
from .session import Session

_TRIES = 30
_PATIENCE = 2_000
"""Milliseconds that a tick waits for another that holds the capacity. Why less than an insert: who fires ticks keeps
leases alive."""
_Found = TypeVar("_Found", JobStatus, JobStatus | DuplicateError)


def cancel(session: Session, ids: Sequence[str]) -> list[JobStatus | None]:
    """As `JobStore.cancel` says."""
    (found,) = session.write(session.step("cancel", ids=list(ids)))
    statuses = {id: status_of(status) for id, status in found.rows}
    return _in_order(ids, statuses, dict.fromkeys(WAITING, JobStatus.CANCELLED))


def retry(
    session: Session, ids: Sequence[str], renewed: NewPayload | None
) -> list[JobStatus | DuplicateError | None]:
    """As `JobStore.retry` says."""
    found = _revive(session, ids, renewed)
    answers = {
        id: status_of(status) if other is None else retry_refusal(other, name)
        for id, status, name, other in found.rows
    }
    return _in_order(ids, answers, dict.fromkeys(sources(Move.REVIVE), JobStatus.QUEUED))


def delete(session: Session, ids: Sequence[str]) -> list[JobStatus | None]:
    """As `JobStore.delete` says."""
    (found,) = session.write(session.step("delete", ids=list(ids)))
    statuses = {id: status_of(status) for id, status in found.rows}
    answers: list[JobStatus | None] = []
    for id in ids:
        answers.append(statuses.get(id))
        if statuses.get(id) in FINISHED:
            del statuses[id]
    return answers


def _revive(session: Session, ids: Sequence[str], renewed: NewPayload | None) -> Result:
    """Again, if another of the same unique name was inserted meanwhile: the next look sees it."""
    payload, key = (None, None) if renewed is None else (renewed.payload.decode(), renewed.key)
    for _ in range(_TRIES):
        try:
            return session.write(
                session.step("revive", ids=list(ids), payload=payload, key=key), is_work=True
            )[0]
        except StoreError as error:
            if not isinstance(error.__cause__, pg.UniqueViolation):
                raise
    raise StoreAwayError(f"others inserted jobs of the same unique names {_TRIES} times meanwhile")


def _in_order(
    ids: Sequence[str], found: dict[str, _Found], becomes: Mapping[JobStatus, JobStatus]
) -> list[_Found | None]:
    """How each was found: a second time, as the first has left it."""
    answers: list[_Found | None] = []
    for id in ids:
        answer = found.get(id)
        answers.append(answer)
        if isinstance(answer, JobStatus) and answer in becomes:
            found[id] = becomes[answer]
    return answers


def tick_steps(
    session: Session, name: str, tick_at: float, next_at: float, job: NewJob | None, bounds: Bounds
) -> Conversation:
    """The answer to the job, if there is one; no answer at all if the tick is not the next."""
    values = {"name": name, "tick_at": tick_at, "next_at": next_at, "job": job and job.id}
    yield session.step("patience", milliseconds=_PATIENCE)
    if not (yield session.step("is_next_tick", **values)).rows:
        return []
    answers: list[Answer] = [[]]
    if job is not None:
        answers = yield from insert_steps(session.statements, [[job]], bounds, session.now())
    if isinstance(answers[0], list):
        yield session.step("advance", **values)
        reach("tick-inside")
    return answers
