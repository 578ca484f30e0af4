"""`cancel`, `retry`, `pause` and `resume`: change what becomes of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ..errors import BadInputError
from .guard import guarded
from .jobs import Json, Queue, Type
from .options import with_target

Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="the jobs", show_default=False)]
Status = Annotated[str | None, typer.Option("--status", help="all jobs with this status", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="all jobs")]
Name = Annotated[str, typer.Argument(metavar="QUEUE", help="the name of a queue")]


@guarded
@with_target
def cancel(
    *,
    ids: Ids = None,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    all: All = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Cancel jobs: by id, or all unfinished ones that match."""
    _steer("cancel", ids or [], {"status": status, "type": type, "queue": queue}, all, json, flags)


@guarded
@with_target
def retry(
    *,
    ids: Ids = None,
    status: Status = None,
    type: Type = None,
    queue: Queue = None,
    all: All = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Run failed and cancelled jobs again: by id, or all that match."""
    _steer("retry", ids or [], {"status": status, "type": type, "queue": queue}, all, json, flags)


@guarded
@with_target
def pause(*, queue: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Start no more jobs of a queue."""
    _hold("pause", queue, json, flags)


@guarded
@with_target
def resume(*, queue: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Let the jobs of a paused queue start again."""
    _hold("resume", queue, json, flags)


COMMANDS = (cancel, retry, pause, resume)


def _steer(
    verb: str,
    ids: list[str],
    filters: dict[str, str | None],
    is_all: bool,
    as_json: bool,
    flags: Mapping[str, Any],
) -> None:
    from .tables import print_json
    from .target import open_target

    has_filter = any(value is not None for value in filters.values())
    if sum([bool(ids), has_filter, is_all]) != 1:
        raise BadInputError(
            "ID", "must be given, or else a filter such as --type, or else --all: one of these"
        )
    with open_target(flags) as target:
        if ids:
            changed = [target.steer(verb, id) for id in ids]
            if as_json:
                print_json(changed, without=("payload", "result", "history"))
            else:
                for job in changed:
                    typer.echo(
                        f"{job.id} {job.status}{_PENDING if verb == 'cancel' and job.status == 'running' else ''}"
                    )
            return
        count = target.steer_many(verb, **filters)
    print_json({"count": count}) if as_json else typer.echo(f"{count} {'job' if count == 1 else 'jobs'}")


_PENDING = " (it is told to end)"


def _hold(verb: str, queue: str, as_json: bool, flags: Mapping[str, Any]) -> None:
    from .tables import print_json
    from .target import open_target

    with open_target(flags) as target:
        info = target.hold(verb, queue)
    if as_json:
        print_json(info)
    else:
        state = "paused" if info.paused else "running"
        typer.echo(f"{info.name} {state}: {info.scheduled + info.queued} jobs wait, {info.running} run")
