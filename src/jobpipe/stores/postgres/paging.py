"""Pages of jobs, for a filter, and failed jobs in groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...model.counts import Failures, Filter, Page
from ..failures import ERROR_HEAD, error_start, failed_of, failures_of
from .connection import Step
from .rows import job_of
from .statements import Statements

_NEWEST = 2**62


def page_step(statements: Statements, filter: Filter, limit: int, before: int | None) -> Step:
    """What brings the rows of a page, and one more if there is a next."""
    # Why the status as a literal: only so does PostgreSQL see which partial index has all of them.
    status = "" if filter.status is None else f" AND status = '{filter.status.value}'"
    named = {"type": filter.type, "queue": filter.queue}
    values = {name: value for name, value in named.items() if value is not None}
    filters = status + "".join(f" AND {name} = %({name})s" for name in values)
    if filter.error is not None:
        # Why as text: a stored error is not read as JSON, which another program may have written anyhow.
        values["error"] = error_start(filter.error)
        filters += " AND starts_with(error::text, %(error)s)"
    name, tag = ("page", {}) if filter.tag is None else ("page_tagged", {"tag": filter.tag})
    return Step(
        statements.filled(name, filters=filters),
        {**values, **tag, "before": _NEWEST if before is None else before, "limit": limit + 1},
    )


def page_of(rows: Sequence[Sequence[Any]], limit: int) -> Page:
    """The page that these rows are."""
    shown = rows[:limit]
    return Page(list(map(job_of, shown)), shown[-1][0] if len(rows) > limit else None)


def failures_values(limit: int) -> dict[str, int]:
    """The parameters of failures.sql."""
    return {"head": ERROR_HEAD, "limit": limit + 1}


def failures_in(rows: Sequence[Sequence[Any]], limit: int) -> Failures:
    """The groups of these rows."""
    return failures_of(map(failed_of, rows), limit)
