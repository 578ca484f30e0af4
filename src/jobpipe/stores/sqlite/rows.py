"""Rows as jobs and claims, and values as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ...job import Attempt, Job, JobError, JobStatus, Progress, instant
from ..base import Claim, Lease, NewJob


class _Ended(Struct):
    """An entry of the history as it is stored."""

    number: int
    began_at: float
    ended_at: float
    worker: str
    error: JobError | None


_read_error = msgspec.json.Decoder(JobError).decode
_read_progress = msgspec.json.Decoder(Progress).decode
_read_history = msgspec.json.Decoder(list[_Ended]).decode
_read_json = msgspec.json.Decoder().decode
_write = msgspec.json.Encoder().encode


def text_of(value: Any) -> str | None:
    """A value as JSON text, for SQLite's own JSON functions; None stays None."""
    return None if value is None else _write(value).decode()


def new_row(job: NewJob, now: float) -> tuple[Any, ...]:
    """The values of insert.sql."""
    run_at = job.run_at if job.run_at is not None else now + job.delay
    status = JobStatus.SCHEDULED if run_at > now else JobStatus.QUEUED
    return (
        *(job.id, job.type, job.queue, status.value, job.max_retries, job.priority),
        *(run_at, job.deadline, now, job.fingerprint, job.payload),
    )


def claim_of(row: Sequence[Any], worker: str, token: str, now: float) -> Claim:
    """A row of claim.sql."""
    _, id, type, queue, payload, attempts, max_retries, priority, deadline, run_at, created_at = row
    return Claim(
        lease=Lease(id, attempts, worker, token),
        type=type,
        queue=queue,
        payload=payload,
        attempts=attempts,
        max_retries=max_retries,
        priority=priority,
        deadline=deadline,
        run_at=run_at,
        created_at=created_at,
        started_at=now,
    )


def job_of(row: Sequence[Any]) -> Job:
    """A row of page.sql, or of get.sql, which has three columns more."""
    _, id, type, queue, status, attempts, max_retries, priority, run_at, deadline, created_at, *rest = row
    started_at, finished_at, error, progress, *body = rest
    payload, result, history = body or (None, None, None)
    return Job(
        id=id,
        type=type,
        queue=queue,
        status=JobStatus(status),
        payload=None if payload is None else _read_json(payload),
        result=None if result is None else _read_json(result),
        attempts=attempts,
        max_retries=max_retries,
        priority=priority,
        run_at=instant(run_at),
        deadline=deadline,
        error=None if error is None else _read_error(error),
        progress=None if progress is None else _read_progress(progress),
        created_at=instant(created_at),
        started_at=None if started_at is None else instant(started_at),
        finished_at=None if finished_at is None else instant(finished_at),
        history=() if history is None else tuple(map(_attempt_of, _read_history(history))),
    )


def _attempt_of(ended: _Ended) -> Attempt:
    return Attempt(
        number=ended.number,
        began_at=instant(ended.began_at),
        ended_at=instant(ended.ended_at),
        worker=ended.worker,
        error=ended.error,
    )
