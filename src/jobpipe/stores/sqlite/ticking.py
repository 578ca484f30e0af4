"""Schedules within a transaction: the rows, and the one step in which a tick puts its job in and goes on."""

from __future__ import annotations

import sqlite3

from ...failpoints import reach
from ...model.admission import Bounds
from ...model.newjob import NewJob, Receipt, Refusal
from ...model.schedule import ScheduleEntry
from ..sql_rows import schedule_of, schedule_values
from .inserting import insert_one
from .statements import sql


def entries(cursor: sqlite3.Cursor) -> list[ScheduleEntry]:
    """All schedules, by name."""
    return [schedule_of(row) for row in cursor.execute(sql("schedules"))]


def put_schedule(cursor: sqlite3.Cursor, now: float, entry: ScheduleEntry) -> ScheduleEntry:
    """Make or change one; what it is now."""
    cursor.execute(sql("put_schedule"), schedule_values(entry))
    (found,) = [each for each in entries(cursor) if each.name == entry.name]
    return found


def drop_schedule(cursor: sqlite3.Cursor, now: float, name: str) -> bool:
    return cursor.execute(sql("drop_schedule"), (name,)).rowcount == 1


def pause_schedule(cursor: sqlite3.Cursor, now: float, name: str) -> bool:
    return cursor.execute(sql("pause_schedule"), (name,)).rowcount == 1


def resume_schedule(cursor: sqlite3.Cursor, now: float, name: str, tick_at: float, next_at: float) -> bool:
    values = {"name": name, "tick_at": tick_at, "next_at": next_at}
    return cursor.execute(sql("resume_schedule"), values).rowcount == 1


def fire(
    cursor: sqlite3.Cursor,
    name: str,
    tick_at: float,
    next_at: float,
    job: NewJob | None,
    capacity: int,
    now: float,
) -> Receipt | Refusal | None:
    (is_next,) = cursor.execute(sql("is_next_tick"), (name, tick_at)).fetchone()
    if not is_next:
        return None
    receipt = None
    if job is not None:
        answer = insert_one(cursor, [job], Bounds(capacity), now)
        if not isinstance(answer, list):
            return answer
        (receipt,) = answer
    values = {"name": name, "tick_at": tick_at, "next_at": next_at, "job": job and job.id}
    cursor.execute(sql("advance"), values)
    reach("tick-inside")
    return receipt
