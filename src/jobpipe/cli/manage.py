"""`cancel`, `retry`, `delete`, `pause` and `resume`: manage jobs and queues."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ..errors import BadInputError, DuplicateError, JobNotFoundError, WrongStatusError
from ..model.text import counted
from ..process.logs import escape
from .completion.candidates import complete_id, complete_queue
from .guard import fail, guarded
from .jobs import NOT_IN_LISTS, Error, Json, Queue, Status, Tag, Type
from .options import with_target

if TYPE_CHECKING:
    from ..model.job import Job
    from .target import Target

T = TypeVar("T")

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="ids of the jobs", show_default=False, autocompletion=complete_id),
]
All = Annotated[bool, typer.Option("--all", help="all jobs")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask for confirmation")]
Name = Annotated[
    str, typer.Argument(metavar="QUEUE", help="name of the queue", autocompletion=complete_queue)
]


@guarded
@with_target
def cancel(
    *,
    ids: Ids = None,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    tag: Tag = None,
    error: Error = None,
    all: All = False,
    yes: Yes = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Cancel jobs: by id, or all unfinished ones that match."""
    filters = {"status": status, "type": type, "queue": queue, "tag": tag, "error": error}
    _manage("cancel", ids or [], filters, all, yes, json, flags)


@guarded
@with_target
def retry(
    *,
    ids: Ids = None,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    tag: Tag = None,
    error: Error = None,
    all: All = False,
    payload: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="the payload to run with, of one job", show_default=False),
    ] = None,
    yes: Yes = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Run failed and cancelled jobs again: by id, or all that match."""
    from .payload import typed_payload

    options = {} if payload is None else {"payload": typed_payload(payload, "--payload")}
    if options and len(ids or []) != 1:
        raise BadInputError("--payload", "can be given for one job only, by its ID")
    filters = {"status": status, "type": type, "queue": queue, "tag": tag, "error": error}
    _manage("retry", ids or [], filters, all, yes, json, flags, **options)


@guarded
@with_target
def delete(
    *,
    ids: Ids = None,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    tag: Tag = None,
    error: Error = None,
    all: All = False,
    yes: Yes = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Delete finished jobs: by id, or all that match."""
    filters = {"status": status, "type": type, "queue": queue, "tag": tag, "error": error}
    _manage("delete", ids or [], filters, all, yes, json, flags)


@guarded
@with_target
def pause(*, queue: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Pause a queue: no more of its jobs start."""
    _hold("pause", queue, json, flags)


@guarded
@with_target
def resume(*, queue: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Resume a paused queue."""
    _hold("resume", queue, json, flags)


COMMANDS = (cancel, retry, delete, pause, resume)


def _manage(
    verb: str,
    ids: list[str],
    filters: dict[str, str | None],
    is_all: bool,
    is_sure: bool,
    as_json: bool,
    flags: Mapping[str, Any],
    **options: Any,
) -> None:
    from .render.tables import print_json
    from .target import open_target

    has_filter = any(value is not None for value in filters.values())
    if sum([bool(ids), has_filter, is_all]) != 1:
        raise BadInputError("ID", "is required, or a filter such as --type, or --all: exactly one of these")
    with open_target(flags) as target:
        if ids:
            _delete_each(target, ids, as_json) if verb == "delete" else _manage_each(
                target, verb, ids, as_json, **options
            )
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


def _delete_each(target: Target, ids: list[str], as_json: bool) -> None:
    from .render.tables import print_json

    deleted, code = _each(ids, target.delete)
    if as_json:
        print_json({"count": len(deleted)})
    else:
        typer.echo("".join(f"{id} deleted\n" for id in deleted), nl=False)
    if code:
        raise typer.Exit(code)


def _manage_each(target: Target, verb: str, ids: list[str], as_json: bool, **options: Any) -> None:
    from .render.tables import print_json

    def change(id: str) -> Job:
        job = target.manage(verb, id, **options)
        if not as_json:
            is_pending = verb == "cancel" and job.status == "running"
            typer.echo(f"{job.id} {job.status}{' (cancelling)' if is_pending else ''}")
        return job

    changed, code = _each(ids, change)
    if as_json:
        print_json(changed, without=NOT_IN_LISTS)
    if code:
        raise typer.Exit(code)


def _each(ids: list[str], do: Callable[[str], T]) -> tuple[list[T], int]:
    """Each by itself: one that cannot be changed keeps no other from it. What came of them, and the exit code."""
    found: list[T] = []
    code = 0
    for id in ids:
        try:
            found.append(do(id))
        except (JobNotFoundError, WrongStatusError, DuplicateError) as error:
            code = fail(str(error)).exit_code
    return found, code


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


def _hold(verb: str, queue: str, as_json: bool, flags: Mapping[str, Any]) -> None:
    from .render.tables import print_json
    from .target import open_target

    with open_target(flags) as target:
        info = target.hold(verb, queue)
    if as_json:
        print_json(info)
    else:
        state = "paused" if info.paused else "running"
        waiting = counted(info.scheduled + info.queued, "job", "waiting", "waiting")
        typer.echo(f"{escape(info.name)} {state}: {waiting}, {info.running:,} running")
