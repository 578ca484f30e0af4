"""`jobs`, `job`, `failures`, `queues`, `workers`, `limits` and `stats`: inspect what there is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInputError
from .completion.candidates import complete_id, complete_queue, complete_status, complete_type
from .options import option, whole_number, with_options, with_target

if TYPE_CHECKING:
    from ..model.job import Job
    from .target import Target

NOT_IN_LISTS = ("payload", "result", "history", "steps", "on_duplicate", "max_wait")
"""Fields of a job that lists do not show."""
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Utc = Annotated[bool, typer.Option("--utc", help="show times in UTC, not in local time")]
Id = Annotated[str, typer.Argument(metavar="ID", help="id of the job", autocompletion=complete_id)]
_SUSPENDED = ("sleep", "signal")
"""Reasons for which a job that has begun does not go on."""
_STATUSES = "only jobs with this status: queued, waiting, done, …"

with_filters = with_options(
    "filters",
    {
        "status": Annotated[str | None, option("STATUS", _STATUSES, autocompletion=complete_status)],
        "type": Annotated[str | None, option("TYPE", "only jobs of this type", autocompletion=complete_type)],
        "queue": Annotated[
            str | None, option("QUEUE", "only jobs in this queue", autocompletion=complete_queue)
        ],
        "tag": Annotated[str | None, option("TAG", "only jobs with this tag")],
        "error": Annotated[str | None, option("ERROR", "only jobs whose last error has this type")],
    },
)
"""Give a command the `filters` that say which jobs it is about."""


@with_target
@with_filters
def jobs(
    *,
    filters: Mapping[str, str],
    limit: Annotated[int, typer.Option(metavar="N", help="maximum number of jobs", parser=whole_number)] = 50,
    utc: Utc = False,
    json: Json = False,
    target: Target,
) -> None:
    """List jobs, newest first."""
    show("jobs", target.jobs(limit=limit, **filters), json, zone_of(utc))


@with_target
def job(
    *,
    id: Id,
    explain: Annotated[bool, typer.Option("--explain", help="explain why it is not running")] = False,
    steps: Annotated[bool, typer.Option("--steps", help="list its steps, with their whole results")] = False,
    utc: Utc = False,
    json: Json = False,
    target: Target,
) -> None:
    """Show a job with its history and steps, and what it waits for."""
    if explain and steps:
        raise BadInputError("--explain", "and --steps exclude each other")
    if explain:
        show("explanation", target.explain(id), json)
    elif steps:
        show("steps", target.steps(id), json, zone_of(utc))
    elif json:
        show("job", target.job(id), json)
    else:
        _show_whole(target.job(id), target, zone_of(utc))


@with_target
def failures(*, utc: Utc = False, json: Json = False, target: Target) -> None:
    """List failed jobs by type and error, those that failed last first."""
    show("failures", target.failures(), json, zone_of(utc))


@with_target
def queues(*, json: Json = False, target: Target) -> None:
    """List queues with the number of their unfinished jobs."""
    show("queues", target.queues(), json)


@with_target
def workers(*, utc: Utc = False, json: Json = False, target: Target) -> None:
    """List the processes that run jobs."""
    show("workers", target.workers(), json, zone_of(utc))


@with_target
def limits(*, utc: Utc = False, json: Json = False, target: Target) -> None:
    """List the limits of job types and their current use."""
    show("limits", target.limits(), json, zone_of(utc))


@with_target
def stats(*, json: Json = False, target: Target) -> None:
    """Count jobs by status. A service also tells how many per second reached each one recently."""
    show("stats", target.stats(), json)


COMMANDS = (jobs, job, failures, queues, workers, limits, stats)


def _show_whole(job: Job, target: Target, zone: tzinfo | None) -> None:
    """For people: with all of its steps, and what it waits for if it is suspended."""
    from msgspec.structs import replace

    from ..model.durable import SHOWN_STEPS
    from .render.tables import print_job

    if len(job.steps) >= SHOWN_STEPS:
        job = replace(job, steps=tuple(target.steps(job.id)))
    may_be_suspended = job.started_at is not None and job.status in ("scheduled", "waiting")
    why = target.explain(job.id) if may_be_suspended else None
    print_job(job, zone, why.text if why is not None and why.reason in _SUSPENDED else None)


def show(what: str, found: Any, as_json: bool, *zone: tzinfo | None) -> None:
    """Print what was found: as JSON, or as the table of that name has it."""
    from .render import tables  # Why here: it takes longer to load than the help of all commands

    if as_json:
        tables.print_json(found, without=NOT_IN_LISTS if what == "jobs" else ())
    else:
        getattr(tables, f"print_{what}")(found, *zone)


def zone_of(is_utc: bool) -> tzinfo | None:
    """The zone of times that people are shown; None for the local one."""
    return UTC if is_utc else None
