"""`jobs`, `job`, `failures`, `queues`, `workers`, `limits` and `stats`: inspect what there is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, tzinfo
from typing import Annotated, Any

import typer

from .completion.candidates import complete_id, complete_queue, complete_status, complete_type
from .guard import guarded
from .options import whole_number, with_target

NOT_IN_LISTS = ("payload", "result", "history", "on_duplicate", "max_wait")
"""Fields of a job that lists do not show."""
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Utc = Annotated[bool, typer.Option("--utc", help="show times in UTC, not in local time")]
Status = Annotated[
    str | None,
    typer.Option(
        "--status",
        metavar="STATUS",
        help="only jobs with this status: queued, done, …",
        show_default=False,
        autocompletion=complete_status,
    ),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="only jobs of this type",
        show_default=False,
        autocompletion=complete_type,
    ),
]
Queue = Annotated[
    str | None,
    typer.Option(
        "--queue",
        metavar="QUEUE",
        help="only jobs in this queue",
        show_default=False,
        autocompletion=complete_queue,
    ),
]

Tag = Annotated[
    str | None, typer.Option("--tag", metavar="TAG", help="only jobs with this tag", show_default=False)
]
Error = Annotated[
    str | None,
    typer.Option(
        "--error", metavar="ERROR", help="only jobs whose last error has this type", show_default=False
    ),
]


@guarded
@with_target
def jobs(
    *,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    tag: Tag = None,
    error: Error = None,
    limit: Annotated[int, typer.Option(metavar="N", help="maximum number of jobs", parser=whole_number)] = 50,
    utc: Utc = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """List jobs, newest first."""
    from .render.tables import print_jobs, print_json
    from .target import open_target

    with open_target(flags) as target:
        found = target.jobs(status=status, type=type, queue=queue, tag=tag, error=error, limit=limit)
    if json:
        print_json(found, without=NOT_IN_LISTS)
    else:
        print_jobs(found, zone_of(utc))


@guarded
@with_target
def job(
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="id of the job", autocompletion=complete_id)],
    explain: Annotated[bool, typer.Option("--explain", help="explain why it is not running")] = False,
    utc: Utc = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Show a job with its history."""
    from .render.tables import print_explanation, print_job, print_json
    from .target import open_target

    with open_target(flags) as target:
        found = None if explain else target.job(id)
        explanation = target.explain(id) if explain else None
    if json:
        print_json(found or explanation)
    elif found is not None:
        print_job(found, zone_of(utc))
    elif explanation is not None:
        print_explanation(explanation)


@guarded
@with_target
def failures(*, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List failed jobs by type and error, those that failed last first."""
    from .render.tables import print_failures, print_json
    from .target import open_target

    with open_target(flags) as target:
        found = target.failures()
    print_json(found) if json else print_failures(found, zone_of(utc))


@guarded
@with_target
def queues(*, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List queues with the number of their unfinished jobs."""
    from .render.tables import print_json, print_queues
    from .target import open_target

    with open_target(flags) as target:
        found = target.queues()
    print_json(found) if json else print_queues(found)


@guarded
@with_target
def workers(*, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List the processes that run jobs."""
    from .render.tables import print_json, print_workers
    from .target import open_target

    with open_target(flags) as target:
        found = target.workers()
    print_json(found) if json else print_workers(found, zone_of(utc))


@guarded
@with_target
def limits(*, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List the limits of job types and their current use."""
    from .render.tables import print_json, print_limits
    from .target import open_target

    with open_target(flags) as target:
        found = target.limits()
    print_json(found) if json else print_limits(found, zone_of(utc))


@guarded
@with_target
def stats(*, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Count jobs by status. A service also tells how many per second reached each one recently."""
    from .render.tables import print_json, print_stats
    from .target import open_target

    with open_target(flags) as target:
        found = target.stats()
    print_json(found) if json else print_stats(found)


COMMANDS = (jobs, job, failures, queues, workers, limits, stats)


def zone_of(is_utc: bool) -> tzinfo | None:
    """The zone of times that people are shown; None for the local one."""
    return UTC if is_utc else None
