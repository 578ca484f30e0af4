"""The statement that reads a page of jobs, for a filter."""

from __future__ import annotations

from ...model.counts import Filter
from ...model.job import JobStatus
from .statements import sql

_INDEXES = {
    JobStatus.RUNNING: "INDEXED BY jobs_leased",
    JobStatus.SCHEDULED: "INDEXED BY jobs_due",
    JobStatus.FAILED: "INDEXED BY jobs_failed",
    JobStatus.CANCELLED: "INDEXED BY jobs_cancelled",
}
"""Where to find the jobs of a status; the others are found among the newest."""


def page_statement(filter: Filter) -> tuple[str, dict[str, str]]:
    """The statement, and the values of the filter that it wants."""
    # Why the status as a literal: only so does SQLite see which partial index has all of them.
    status = "" if filter.status is None else f" AND status = '{filter.status.value}'"
    named = {"type": filter.type, "queue": filter.queue}
    values = {name: value for name, value in named.items() if value is not None}
    filters = status + "".join(f" AND {name} = :{name}" for name in values)
    index = "" if filter.status is None else _INDEXES.get(filter.status, "")
    return sql("page").format(index=index, filters=filters), values
