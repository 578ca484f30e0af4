"""Parcels: jobs that come from another store, or go to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import JobConflictError
from ...model.job import Attempt
from ...model.newjob import NewJob, Parcel
from .arrays import numbers, texts
from .connection import Connection
from .inserting import insert_values
from .rows import attempt_of, error_of, optional_text_of, progress_of, text_of
from .statements import Statements


def parcel_of(row: Sequence[Any]) -> Parcel:
    """A row of export.sql."""
    number, id, type, queue, payload, max_retries, priority, run_at, deadline, fingerprint, key, *kept = row
    attempts, runs, created_at, started_at, error, progress, history = kept
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
    )
    return Parcel(
        number=number,
        job=job,
        attempts=attempts,
        runs=runs,
        created_at=created_at,
        started_at=started_at,
        error=error_of(error),
        progress=progress_of(progress),
        history=tuple(map(attempt_of, history)),
    )


def adopt(
    connection: Connection, statements: Statements, parcels: Sequence[Parcel], now: float | None
) -> int:
    """Insert them within a transaction; how many were new. JobConflictError if one of the ids is taken by other content."""
    written = connection.execute(statements("adopt"), _values(parcels, now)).rowcount
    if written < len(parcels):
        known = connection.execute(
            statements("known"), {"ids": [parcel.job.id for parcel in parcels]}
        ).fetchall()
        prints = {id: fingerprint for id, fingerprint, _ in known}
        for parcel in parcels:
            if not parcel.job.is_same(prints[parcel.job.id]):
                raise JobConflictError(parcel.job.id)
    return written


def _values(parcels: Sequence[Parcel], now: float | None) -> dict[str, Any]:
    """The parameters of adopt.sql."""
    return {
        **insert_values([parcel.job for parcel in parcels], now),
        "attempts": numbers([parcel.attempts for parcel in parcels]),
        "runs": numbers([parcel.runs for parcel in parcels]),
        "created_at": numbers([parcel.created_at for parcel in parcels]),
        "started_at": numbers([parcel.started_at for parcel in parcels]),
        "errors": texts([optional_text_of(parcel.error) for parcel in parcels]),
        "progress": texts([optional_text_of(parcel.progress) for parcel in parcels]),
        "histories": texts([text_of(list(map(_ended_of, parcel.history))) for parcel in parcels]),
    }


def _ended_of(attempt: Attempt) -> tuple[Any, ...]:
    began_at, ended_at = attempt.began_at.timestamp(), attempt.ended_at.timestamp()
    return attempt.number, began_at, ended_at, attempt.worker, attempt.error
