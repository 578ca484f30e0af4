"""`cancel`, `retry`, `delete`, `signal`, `pause` and `resume`: manage jobs and queues."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInputError, DuplicateError, JobNotFoundError, WrongStatusError
from ..model.text import counted
from .completion.candidates import complete_id, complete_queue, complete_signal
from .guard import fail
from .jobs import NOT_IN_LISTS, Id, Json, show, with_filters
from .options import option, typed_payload, with_place, with_target

if TYPE_CHECKING:
    from ..model.job import Job
    from .target import Target

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="ids of the jobs", show_default=False, autocompletion=complete_id),
]
All = Annotated[bool, typer.Option("--all", help="all jobs")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask for confirmation")]
SignalName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="name of the signal", autocompletion=complete_signal),
]
Name = Annotated[
    str, typer.Argument(metavar="QUEUE", help="name of the queue", autocompletion=complete_queue)
]


@with_place
@with_filters
def cancel(
    *,
    ids: Ids = None,
    filters: Mapping[str, str],
    all: All = False,
    yes: Yes = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Cancel jobs: by id, or all unfinished ones that match."""
    _manage("cancel", ids or [], filters, all, yes, json, flags)


@with_place
@with_filters
def retry(
    *,
    ids: Ids = None,
    filters: Mapping[str, str],
    all: All = False,
    payload: Annotated[str | None, option("JSON", "run one job with this payload, from the start")] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="run finished steps again, too; only for jobs given by ID")
    ] = False,
    yes: Yes = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Run failed and cancelled jobs again: by id, or all that match. Finished steps are not run again."""
    options = {} if payload is None else {"payload": typed_payload(payload, "--payload")}
    if options and len(ids or []) != 1:
        raise BadInputError("--payload", "can be given for one job only, by its ID")
    if from_start:
        if not ids:
            raise BadInputError("--from-start", "can only be given for jobs by ID")
        options["from_start"] = True
    _manage("retry", ids or [], filters, all, yes, json, flags, **options)


@with_place
@with_filters
def delete(
    *,
    ids: Ids = None,
    filters: Mapping[str, str],
    all: All = False,
    yes: Yes = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Delete finished jobs: by id, or all that match."""
    _manage("delete", ids or [], filters, all, yes, json, flags)


@with_target
def signal(
    *,
    id: Id,
    name: SignalName,
    payload: Annotated[
        str | None,
        typer.Argument(
            metavar="PAYLOAD",
            help='JSON, such as \'{"by": "ada"}\'; wait_for returns it',
            show_default="null",
        ),
    ] = None,
    json: Json = False,
    target: Target,
) -> None:
    """Send a signal to a job. It is kept until the job waits for it. Of each name, the first signal wins."""
    show("signal", target.signal(id, name, typed_payload(payload or "null")), json)


@with_target
def pause(*, queue: Name, json: Json = False, target: Target) -> None:
    """Pause a queue: no more of its jobs start."""
    show("queue_state", target.hold("pause", queue), json)


@with_target
def resume(*, queue: Name, json: Json = False, target: Target) -> None:
    """Resume a paused queue."""
    show("queue_state", target.hold("resume", queue), json)


COMMANDS = (cancel, retry, delete, signal, pause, resume)


def _manage(
    verb: str,
    ids: list[str],
    filters: Mapping[str, str],
    is_all: bool,
    is_sure: bool,
    as_json: bool,
    flags: Mapping[str, Any],
    **options: Any,
) -> None:
    from .render.tables import print_json
    from .target import open_target

    if sum([bool(ids), bool(filters), is_all]) != 1:
        raise BadInputError("ID", "is required, or a filter such as --type, or --all: exactly one of these")
    with open_target(flags) as target:
        if ids:
            _manage_each(target, verb, ids, as_json, **options)
            return
        if not is_sure:
            _ask(verb, target.count(verb, **filters))
        try:
            count = target.manage_many(verb, all=is_all, **filters)
        except KeyboardInterrupt:
            raise fail(
                f"interrupted: some jobs may have changed; run {verb} again to continue", 130
            ) from None
    print_json({"count": count}) if as_json else typer.echo(counted(count, "job"))


def _manage_each(target: Target, verb: str, ids: list[str], as_json: bool, **options: Any) -> None:
    """Each by itself: one that cannot be changed keeps no other from it."""
    from .render.tables import print_json

    changed: list[Job | None] = []
    code = 0
    for id in ids:
        job: Job | None = None
        try:
            if verb == "delete":
                target.delete(id)
            else:
                job = target.manage(verb, id, **options)
        except (JobNotFoundError, WrongStatusError, DuplicateError) as error:
            code = fail(str(error)).exit_code
            continue
        changed.append(job)
        if not as_json:
            is_pending = verb == "cancel" and job is not None and job.status == "running"
            status = "deleted" if job is None else job.status
            typer.echo(f"{id} {status}{' (cancelling)' if is_pending else ''}")
    if as_json:
        print_json({"count": len(changed)} if verb == "delete" else changed, without=NOT_IN_LISTS)
    if code:
        raise typer.Exit(code)


def _ask(verb: str, count: int) -> None:
    """Go on if somebody says so, or if there is nothing to be changed."""
    from .target import MOST_COUNTED

    if count == 0:
        return
    what = f"{verb} {counted(count, 'job') if count <= MOST_COUNTED else f'more than {MOST_COUNTED:,} jobs'}"
    if not sys.stdin.isatty():
        raise fail(f"no terminal to confirm on, pass --yes to {what}", 2)
    typer.echo(f"{what}? [y/N] ", err=True, nl=False)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise fail("nothing was changed")
