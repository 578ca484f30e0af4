"""The one transaction in which a tick inserts its job and the schedule goes on."""

from __future__ import annotations

from ...failpoints import reach
from ...model.admission import Bounds
from ...model.newjob import Answer, NewJob
from .inserting import Conversation, insert_steps
from .session import Session

_PATIENCE = 2_000
"""Milliseconds that a tick waits for another that holds the capacity. Why less than an insert: who fires ticks keeps
leases alive."""


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
