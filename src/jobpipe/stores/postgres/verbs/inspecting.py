"""What is asked about jobs, queues, limits, events and workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.counts import MOST_FAILURES, Counts, Failures, Filter, JobEvent, Page, WorkerInfo
from ....model.gate import Limits
from ....model.job import Job
from ...failures import ERROR_HEAD, error_start, failed_of, failures_of
from ...sql_rows import event_of, worker_of
from ...stored import counts_of, gate_of
from ..rows import job_of
from ..session import Session
from ..verb import Step, Verb, run

_NEWEST = 2**62
_LONG_JOURNAL = 500
"""With more changes than that, a count folds it."""


def get(session: Session, id: str) -> Verb[Job | None]:
    (found,) = yield from session.read(session.step("get", id=id))
    return job_of(found.rows[0]) if found.rows else None


def page(session: Session, filter: Filter, limit: int, before: int | None = None) -> Verb[Page]:
    (found,) = yield from session.read(page_step(session, filter, limit, before))
    shown = found.rows[:limit]
    return Page(list(map(job_of, shown)), shown[-1][0] if len(found.rows) > limit else None)


def page_step(session: Session, filter: Filter, limit: int, before: int | None) -> Step:
    """What brings the rows of a page, and one more if there is a next."""
    # Why the status as a literal: only so does PostgreSQL see which partial index has all of them.
    status = "" if filter.status is None else f" AND status = '{filter.status.value}'"
    named = {"type": filter.type, "queue": filter.queue}
    values: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    filters = status + "".join(f" AND {name} = %({name})s" for name in values)
    if filter.error is not None:
        # Why as text: a stored error is not read as JSON, which another program may have written anyhow.
        values["error"] = error_start(filter.error)
        filters += " AND starts_with(error::text, %(error)s)"
    name, tag = ("page", {}) if filter.tag is None else ("page_tagged", {"tag": filter.tag})
    values |= {**tag, "before": _NEWEST if before is None else before, "limit": limit + 1}
    return session.step(name, {"filters": filters}, **values)


def counts(session: Session) -> Verb[Counts]:
    counted, paused, long = yield from session.read(
        session.step("counts"),
        session.step("paused"),
        session.step("is_journal_long", most=_LONG_JOURNAL),
    )
    if long.rows[0][0]:
        yield from session.fold()  # Why here: guests fold nothing, and every heartbeat counts once a second
    return counts_of(counted.rows, (queue for (queue,) in paused.rows))


def failures(session: Session, limit: int = MOST_FAILURES) -> Verb[Failures]:
    (found,) = yield from session.read(session.step("failures", head=ERROR_HEAD, limit=limit + 1))
    return failures_of(map(failed_of, found.rows), limit)


def ahead(session: Session, id: str) -> Verb[int]:
    (found,) = yield from session.read(session.step("ahead", id=id))
    return int(found.rows[0][0])


def key_of(session: Session, id: str) -> Verb[str | None]:
    (found,) = yield from run(session.step("key_of", id=id))
    return found.rows[0][0] if found.rows else None


def running_of(session: Session, unique: str) -> Verb[str | None]:
    (found,) = yield from run(session.step("running_of", unique=unique))
    return found.rows[0][0] if found.rows else None


def limits(
    session: Session,
    type: str | None = None,
    key: str | None = None,
    limit: int = 100,
    queues: Sequence[str] = (),
) -> Verb[Limits]:
    found, gates, cooling, of_queues = yield from session.read(
        session.step("time"),
        session.step("gates", type=type, key=key, limit=limit),
        session.step("cooling"),
        session.step("queue_gates", queues=list(queues)),
    )
    now = found.rows[0][0]
    states = [gate_of(("", queue, at if at > now else 0.0, *rest)) for queue, at, *rest in of_queues.rows]
    return Limits(now, list(map(gate_of, gates.rows)), dict(cooling.rows), states)


def events(session: Session, after: int, limit: int) -> Verb[list[JobEvent]]:
    yield from session.read()
    (found,) = yield from session.fold(session.step("events", after=after, limit=limit))
    return list(map(event_of, found.rows))


def last_event(session: Session) -> Verb[int]:
    yield from session.read()
    (found,) = yield from session.fold(session.step("last_event"))
    return int(found.rows[0][0])


def workers(session: Session) -> Verb[list[WorkerInfo]]:
    (found,) = yield from run(session.step("workers"))
    return list(map(worker_of, found.rows))
