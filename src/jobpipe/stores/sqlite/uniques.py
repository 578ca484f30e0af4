"""Unique names within a transaction: who has one, what a job that waits takes over, and who is behind whom."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ...model.newjob import NewJob
from ...model.unique import Named, Waiting
from ..sql_rows import text_of
from .rows import more_values
from .statements import sql


def named(cursor: sqlite3.Cursor, name: str) -> Named:
    """The jobs of a name that are not finished."""
    waiting, running = None, None
    for id, type, queue, has_begun in cursor.execute(sql("named"), (name,)):
        if has_begun:
            running = id
        else:
            waiting = Waiting(id, type, queue)
    return Named(waiting, running)


def replace(cursor: sqlite3.Cursor, id: str, job: NewJob, now: float) -> None:
    """Let a job that waits take the content of a new one."""
    expires_at, _, on_duplicate, max_wait, tags, trace = more_values(job, now)
    values = {
        "id": id,
        "now": now,
        "due_at": job.due_at(now),
        "max_retries": job.max_retries,
        "priority": job.priority,
        "deadline": job.deadline,
        "key": job.key,
        "payload": job.payload.decode(),
        "expires_at": expires_at,
        "on_duplicate": on_duplicate,
        "max_wait": max_wait,
        "tags": tags,
        "trace": trace,
    }
    cursor.execute(sql("untag"), (id,))
    cursor.execute(sql("replace"), values)
    cursor.execute(sql("tag"), (id,))


def order_names(cursor: sqlite3.Cursor, names: Iterable[str]) -> None:
    """One of each that waits is behind one that has begun, and only while there is one."""
    cursor.execute(sql("order_names"), (text_of(sorted(names)),))


def names_of(cursor: sqlite3.Cursor, ids: Sequence[str]) -> set[str]:
    """Of those of the jobs that have one."""
    return {name for (name,) in cursor.execute(sql("names_of"), (text_of(list(ids)),))}


def let_in(cursor: sqlite3.Cursor, ids: Sequence[str]) -> None:
    """These jobs may have ended: who was behind them is so no more."""
    (has_behind,) = cursor.execute(sql("has_behind")).fetchone()
    if has_behind:  # Why asked first: most stores have no such jobs, and theirs are not to pay for it
        order_names(cursor, names_of(cursor, ids))
