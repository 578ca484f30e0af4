"""Cancel, retry and delete: what is done to each job as its status asks for, and the status in which it was found.

Also pausing queues, and forgetting what ended long ago.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from psycopg import errors as pg

from ....errors import DuplicateError, StoreAwayError, StoreError
from ....model.job import FINISHED, PENDING, JobStatus, Move, sources
from ....model.newjob import NewPayload
from ....model.unique import retry_refusal
from ...stored import status_of
from ..session import Session
from ..verb import Verb

_TRIES = 30
_Found = TypeVar("_Found", JobStatus, JobStatus | DuplicateError)


def cancel(session: Session, ids: Sequence[str]) -> Verb[list[JobStatus | None]]:
    if not ids:
        return []
    (found,) = yield from session.write(session.step("cancel", ids=list(ids)))
    statuses = {id: status_of(status) for id, status in found.rows}
    return _in_order(ids, statuses, dict.fromkeys(PENDING, JobStatus.CANCELLED))


def retry(
    session: Session, ids: Sequence[str], renewed: NewPayload | None = None, *, from_start: bool = False
) -> Verb[list[JobStatus | DuplicateError | None]]:
    if not ids:
        return []
    payload, key = (None, None) if renewed is None else (renewed.payload.decode(), renewed.key)
    step = session.step("revive", ids=list(ids), payload=payload, key=key, from_start=from_start)
    for _ in range(_TRIES):
        try:
            (found,) = yield from session.write(step, is_work=True)
        except StoreError as error:
            # Why again: another of the same unique name was inserted meanwhile, and the next look sees it.
            if not isinstance(error.__cause__, pg.UniqueViolation):
                raise
            continue
        answers = {
            id: status_of(status) if other is None else retry_refusal(other, name)
            for id, status, name, other in found.rows
        }
        return _in_order(ids, answers, dict.fromkeys(sources(Move.REVIVE), JobStatus.QUEUED))
    raise StoreAwayError(f"others inserted jobs of the same unique names {_TRIES} times meanwhile")


def delete(session: Session, ids: Sequence[str]) -> Verb[list[JobStatus | None]]:
    if not ids:
        return []
    (found,) = yield from session.write(session.step("delete", ids=list(ids)))
    statuses = {id: status_of(status) for id, status in found.rows}
    answers: list[JobStatus | None] = []
    for id in ids:
        answers.append(statuses.get(id))
        if statuses.get(id) in FINISHED:
            del statuses[id]
    return answers


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


def pause(session: Session, queue: str) -> Verb[None]:
    yield from session.write(session.step("pause", queue=queue))


def resume(session: Session, queue: str) -> Verb[None]:
    steps = (session.step(name, queue=queue) for name in ("resume", "wait_for_gates", "look_again"))
    yield from session.write(*steps, is_work=True)


def prune(session: Session, keep: float, limit: int = 1_000, keep_failed: float | None = None) -> Verb[int]:
    idle = session.step("forget_gates"), session.step("forget_cooling")
    kept = {"keep": keep, "keep_failed": keep if keep_failed is None else keep_failed}
    *_, pruned = yield from session.read(*idle, session.step("prune", **kept, limit=limit))
    yield from session.changed()
    if pruned.touched < limit:
        yield from session.fold(session.step("forget_lanes"), session.step("forget_types"))
    return pruned.touched
