"""Parcels: jobs that come from another store, or go to one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import astuple, replace

from ....errors import JobConflictError
from ....model.job import JobStatus
from ....model.logs import StoredChunk
from ....model.newjob import ExportedJob
from ....model.unique import refuse_second
from ...sql_rows import exported_of, text_of
from ...stored import ended_of
from ..rows import history_of, numbers, optional_text_of, texts
from ..session import Session
from ..verb import Conversation, Verb, transact
from . import durable, logs
from .inserting import Names, insert_values


def export(session: Session, limit: int, after: int = 0) -> Verb[list[ExportedJob]]:
    (found,) = yield from session.read(session.step("export", limit=limit, after=after))
    kept = yield from logs.of_exported(session, [row[0] for row in found.rows])
    states = yield from durable.of_exported(session, [row[1] for row in found.rows])
    return [
        replace(
            _exported_of(row, kept.get(row[0], ())),
            is_waiting=status == JobStatus.WAITING,
            durable=states.get(row[1]),
        )
        for *row, status in found.rows
    ]


def _exported_of(row: Sequence[Any], chunks: Sequence[StoredChunk]) -> ExportedJob:
    *_, history, _, _, _, _, tags, _ = row
    return exported_of(row, history=history_of(history), tags=tags or (), logs=chunks)


def adopt(session: Session, exported: Sequence[ExportedJob]) -> Verb[int]:
    if not exported:
        return 0
    new = yield from transact(partial(_adopt, session, exported))
    yield from session.tell_work()
    return new


def discard(session: Session, ids: Sequence[str]) -> Verb[int]:
    steps = (session.step(name, ids=list(ids)) for name in ("leave_gates", "forget_waits", "discard"))
    *_, discarded = yield from session.write(*steps)
    return discarded.touched


def _adopt(session: Session, exported: Sequence[ExportedJob]) -> Conversation[int]:
    """Insert them; how many were new. JobConflictError if one of the ids is taken by other content."""
    ids = [job.job.id for job in exported]
    names = sorted({job.job.unique for job in exported if job.job.unique is not None})
    if names:
        known = {id for id, _, _ in (yield session.step("known", ids=ids)).rows}
        named = Names((yield session.step("named", names=names)).rows)
        refuse_second([job for job in exported if job.job.id not in known], named)
    written = {id for (id,) in (yield session.step("adopt", **_values(exported))).rows}
    new = [job for job in exported if job.job.id in written]
    yield from logs.adopt(session, new)
    yield from durable.adopt(session, new)
    if len(written) < len(exported):
        found = (yield session.step("known", ids=ids)).rows
        prints = {id: fingerprint for id, fingerprint, _ in found}
        for job in exported:
            if not job.job.is_same(prints[job.job.id]):
                raise JobConflictError(job.job.id)
    return len(written)


def _values(exported: Sequence[ExportedJob]) -> dict[str, Any]:
    """The parameters of adopt.sql."""
    return {
        **insert_values([job.job for job in exported]),
        "attempts": numbers([job.attempts for job in exported]),
        "runs": numbers([job.runs for job in exported]),
        "created_at": numbers([job.created_at for job in exported]),
        "started_at": numbers([job.started_at for job in exported]),
        "are_waiting": [job.is_waiting for job in exported],
        "errors": texts([optional_text_of(job.error) for job in exported]),
        "progress": texts([optional_text_of(job.progress) for job in exported]),
        "histories": texts(
            [text_of([astuple(ended_of(attempt)) for attempt in job.history]) for job in exported]
        ),
    }
