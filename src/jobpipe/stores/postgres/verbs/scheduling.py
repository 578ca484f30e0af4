"""Schedules, and the one transaction in which a tick inserts its job and its schedule goes on."""

from __future__ import annotations

from ....failpoints import reach
from ....model.admission import Bounds
from ....model.newjob import Answer, NewJob, Receipt, Refusal
from ....model.schedule import ScheduleEntry, Schedules
from ...sql_rows import schedule_of, schedule_values
from ..session import Session
from ..verb import Conversation, Step, Verb, run
from .inserting import insert_steps

_PATIENCE = 2_000
"""Milliseconds that a tick waits for another that holds the capacity. Why less than an insert: who fires ticks keeps
leases alive."""


def put_schedule(session: Session, entry: ScheduleEntry) -> Verb[ScheduleEntry]:
    (found,) = yield from run(session.step("put_schedule", **schedule_values(entry)))
    return schedule_of(found.rows[0])


def drop_schedule(session: Session, name: str) -> Verb[bool]:
    return (yield from _is_found(session.step("drop_schedule", name=name)))


def pause_schedule(session: Session, name: str) -> Verb[bool]:
    return (yield from _is_found(session.step("pause_schedule", name=name)))


def resume_schedule(session: Session, name: str, tick_at: float, next_at: float) -> Verb[bool]:
    step = session.step("resume_schedule", name=name, tick_at=tick_at, next_at=next_at)
    return (yield from _is_found(step))


def _is_found(step: Step) -> Verb[bool]:
    (found,) = yield from run(step)
    return found.touched == 1


def schedules(session: Session) -> Verb[Schedules]:
    now, found = yield from run(session.step("time"), session.step("schedules"))
    return Schedules(now.rows[0][0], list(map(schedule_of, found.rows)))


def fire_tick(
    session: Session, name: str, tick_at: float, next_at: float, job: NewJob | None, *, capacity: int = 0
) -> Verb[Receipt | Refusal | None]:
    def tick() -> Conversation[list[Answer]]:
        """The answer to the job, if there is one; no answer at all if the tick is not the next."""
        values = {"name": name, "tick_at": tick_at, "next_at": next_at, "job": job and job.id}
        yield session.step("patience", milliseconds=_PATIENCE)
        if not (yield session.step("is_next_tick", **values)).rows:
            return []
        answers: list[Answer] = [[]]
        if job is not None:
            answers = yield from insert_steps(session, [[job]], Bounds(capacity))
        if isinstance(answers[0], list):
            yield session.step("advance", **values)
            reach("tick-inside")
        return answers

    answers = yield from session.converse(tick)
    if not answers:
        return None
    yield from session.tell_work()
    (answer,) = answers
    return answer if not isinstance(answer, list) else answer[0] if answer else None
