"""`jobs` and `job`: inspect jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from .completion.candidates import complete_id, complete_queue, complete_status, complete_type
from .guard import guarded
from .options import whole_number, with_target

NOT_IN_LISTS = ("payload", "result", "history", "on_duplicate", "max_wait")
"""Fields of a job that lists do not show."""
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
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


@guarded
@with_target
def jobs(
    *,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    tag: Tag = None,
    limit: Annotated[int, typer.Option(metavar="N", help="maximum number of jobs", parser=whole_number)] = 50,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """List jobs, newest first."""
    from .render.tables import print_jobs, print_json
    from .target import open_target

    with open_target(flags) as target:
        found = target.jobs(status=status, type=type, queue=queue, tag=tag, limit=limit)
    if json:
        print_json(found, without=NOT_IN_LISTS)
    else:
        print_jobs(found)


@guarded
@with_target
def job(
    *,
    id: Annotated[str, typer.Argument(metavar="ID", help="id of the job", autocompletion=complete_id)],
    explain: Annotated[bool, typer.Option("--explain", help="explain why it is not running")] = False,
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
        print_job(found)
    elif explanation is not None:
        print_explanation(explanation)


COMMANDS = (jobs, job)
