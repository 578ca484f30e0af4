"""Rows as jobs and claims, and values as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from ...model.job import PENDING, TRANSITIONS, Attempt, Job, JobStatus
from ...model.lease import UNCOUNTED, Settlement
from ...model.newjob import NewJob
from ..sql_rows import COLUMNS, SQL_READERS, text_of
from ..stored import Ended, Reader, Stored, attempt_of, read_job, texts

_read_history = msgspec.json.Decoder(list[Ended]).decode


def new_row(job: NewJob, now: float) -> tuple[Any, ...]:
    """An element of insert.sql's `:jobs`."""
    run_at = job.due_at(now)
    status = JobStatus.SCHEDULED if run_at > now else JobStatus.QUEUED
    row = (
        *(job.id, job.type, job.queue, status, job.max_retries, job.priority),
        *(run_at, job.deadline, job.fingerprint, Raw(job.payload), job.key),
    )
    return row if job.is_plain else (*row, *more_values(job, now))


PLAIN_ROW = 11
"""Values of a row that has none of these."""
MORE_COLUMNS = ("expires_at", "unique_name", "on_duplicate", "max_wait", "tags", "trace")


def more_values(job: NewJob, now: float) -> tuple[Any, ...]:
    """The values of `MORE_COLUMNS`."""
    tags = text_of(job.tags) if job.tags else None
    return job.expires(now), job.unique, job.on_duplicate, job.max_wait, tags, job.trace


def settled_row(settlement: Settlement) -> tuple[Any, ...]:
    """An element of settle.sql's `:settlements`; a delay only where the job is to run again."""
    lease, outcome = settlement.lease, settlement.outcome
    status = TRANSITIONS[JobStatus.RUNNING][outcome.move]
    return (
        lease.id,
        lease.token,
        status,
        int(outcome.move in UNCOUNTED),
        outcome.delay if status in PENDING else None,
        outcome.error,
        outcome.progress,
        None if outcome.result is None else Raw(outcome.result),
        settlement.started_at or None,
    )


def job_of(row: Sequence[Any]) -> Job:
    """A row of page.sql, or of get.sql, which has some columns more."""
    return stored_of(row).job


def stored_of(row: Sequence[Any]) -> Stored:
    """The same, with what is wrong with it."""
    return read_job(dict(zip(COLUMNS, row[1:], strict=False)), _READERS)


def history_of(stored: Any) -> tuple[Attempt, ...]:
    return tuple(map(attempt_of, _read_history(stored)))


_READERS: dict[str, Reader] = {
    **SQL_READERS,
    "history": history_of,
    "tags": lambda stored: texts(stored if stored is None else msgspec.json.decode(stored)),
}
