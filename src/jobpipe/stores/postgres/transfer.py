"""Parcels: jobs that come from another store, or go to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import JobConflictError
from ...model.job import Attempt, OnDuplicate
from ...model.logs import StoredChunk
from ...model.newjob import ExportedJob, NewJob
from ...model.unique import refuse_second
from .arrays import numbers, texts
from .connection import Connection
from .inserting import Names, insert_values
from .logs import adopt as adopt_logs
from .rows import attempt_of, error_of, optional_text_of, progress_of, text_of
from .statements import Statements


def exported_of(row: Sequence[Any], logs: Sequence[StoredChunk]) -> ExportedJob:
    """A row of export.sql."""
    number, id, type, queue, payload, max_retries, priority, run_at, deadline, fingerprint, key, *kept = row
    attempts, runs, created_at, started_at, error, progress, history, *more = kept
    expires_at, unique, on_duplicate, max_wait, tags, trace = more
    job = NewJob(
        id=id,
        type=type,
        queue=queue,
        payload=payload.encode(),
        max_retries=max_retries,
        priority=priority,
        delay=0.0,
        run_at=run_at,
        deadline=deadline,
        fingerprint=fingerprint,
        key=key,
        expires_at=expires_at,
        unique=unique,
        on_duplicate=None if on_duplicate is None else OnDuplicate(on_duplicate),
        max_wait=max_wait,
        tags=tuple(tags or ()),
        trace=trace,
    )
    return ExportedJob(
        number=number,
        job=job,
        attempts=attempts,
        runs=runs,
        created_at=created_at,
        started_at=started_at,
        error=error_of(error),
        progress=progress_of(progress),
        history=tuple(map(attempt_of, history)),
        logs=tuple(logs),
    )


def adopt(
    connection: Connection, statements: Statements, exported: Sequence[ExportedJob], now: float | None
) -> int:
    """Insert them within a transaction; how many were new. JobConflictError if one of the ids is taken by other content."""
    names = sorted({job.job.unique for job in exported if job.job.unique is not None})
    if names:
        _refuse_second(connection, statements, exported, names)
    written = {id for (id,) in connection.execute(statements("adopt"), _values(exported, now)).fetchall()}
    adopt_logs(connection, statements, [job for job in exported if job.job.id in written])
    if len(written) < len(exported):
        known = connection.execute(statements("known"), {"ids": [job.job.id for job in exported]}).fetchall()
        prints = {id: fingerprint for id, fingerprint, _ in known}
        for job in exported:
            if not job.job.is_same(prints[job.job.id]):
                raise JobConflictError(job.job.id)
    return len(written)


def _refuse_second(
    connection: Connection, statements: Statements, exported: Sequence[ExportedJob], names: list[str]
) -> None:
    ids = [job.job.id for job in exported]
    known = {id for id, _, _ in connection.execute(statements("known"), {"ids": ids}).fetchall()}
    named = Names(connection.execute(statements("named"), {"names": names}).fetchall())
    refuse_second([job for job in exported if job.job.id not in known], named)


def _values(exported: Sequence[ExportedJob], now: float | None) -> dict[str, Any]:
    """The parameters of adopt.sql."""
    return {
        **insert_values([job.job for job in exported], now),
        "attempts": numbers([job.attempts for job in exported]),
        "runs": numbers([job.runs for job in exported]),
        "created_at": numbers([job.created_at for job in exported]),
        "started_at": numbers([job.started_at for job in exported]),
        "errors": texts([optional_text_of(job.error) for job in exported]),
        "progress": texts([optional_text_of(job.progress) for job in exported]),
        "histories": texts([text_of(list(map(_ended_of, job.history))) for job in exported]),
    }


def _ended_of(attempt: Attempt) -> tuple[Any, ...]:
    began_at, ended_at = attempt.began_at.timestamp(), attempt.ended_at.timestamp()
    return attempt.number, began_at, ended_at, attempt.worker, attempt.error
