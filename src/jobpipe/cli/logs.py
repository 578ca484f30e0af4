"""`logs`: what the runs of a job logged, once or until the job ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar

import typer

from ..errors import StoreAwayError, UnreachableError
from ..process.logs import escape
from .jobs import Id, Json, Utc, show, zone_of
from .options import with_target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..model.logs import JobLogs
    from .target import Target

_LOOK_EVERY = 0.5
"""Seconds between two looks at a job that runs."""
_TRY_AGAIN = 1.0
"""The same while the service is away."""
P = ParamSpec("P")
R = TypeVar("R")


@with_target
def logs(
    *,
    id: Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="go on until the job is finished")] = False,
    utc: Utc = False,
    json: Json = False,
    target: Target,
) -> None:
    """Show what the runs of a job logged. With --follow and --json, one JSON object a line."""
    from .render.tables import print_json_lines

    for found in _follow(target, id) if follow else (target.logs(id),):
        print_json_lines(found) if follow and json else show("logs", found, json, zone_of(utc))
    if not found.last and not json:
        typer.echo(f"the job {escape(id)!r} has logged nothing", err=True)


def _follow(target: Target, id: str) -> Iterator[JobLogs]:
    """What is new, again and again, until all is told that the job logged before it was finished."""
    from msgspec.structs import replace

    after = 0
    job = target.job(id)
    while True:
        found = _when_back(target.logs, id, after=after)
        yield replace(found, cut=max(found.last - after - len(found.lines), 0))
        after = found.last
        if job.is_finished:
            return
        # Why before the logs: with its end all that it logged is there.
        job = _when_back(target.job_within, id, _LOOK_EVERY)


def _when_back(ask: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """What it answers; while the service, or the store, is away, it is asked again. That is said once."""
    is_said = False
    while True:
        try:
            return ask(*args, **kwargs)
        except (UnreachableError, StoreAwayError) as error:
            if not is_said:
                typer.echo(f"{escape(str(error))}; trying again", err=True)
            is_said = True
            time.sleep(_TRY_AGAIN)


COMMANDS = (logs,)
