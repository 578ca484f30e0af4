"""`schedules`: inspect and manage schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import BadInputError
from .completion.candidates import complete_queue, complete_schedule, complete_type
from .jobs import Json, Utc, show, zone_of
from .options import option, seconds, typed_payload, with_place, with_target

if TYPE_CHECKING:
    from .target import Target

app = typer.Typer(name="schedules", invoke_without_command=True)

_MISSED = ("one", "none")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="name of the schedule", autocompletion=complete_schedule)
]


@app.callback()
@with_place
def schedules(*, ctx: typer.Context, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List schedules with their next and last runs, or manage one."""
    if ctx.invoked_subcommand is not None:
        if json or utc or flags:
            given = "--json" if json else "--utc" if utc else f"--{next(iter(flags))}"
            raise BadInputError(given, f"must come after {ctx.invoked_subcommand!r}")
        return
    from .target import open_target

    with open_target(flags) as target:
        show("schedules", target.schedules(), json, zone_of(utc))


@app.command("show")
@with_target
def show_one(*, name: Name, utc: Utc = False, json: Json = False, target: Target) -> None:
    """Show a schedule with its next five ticks."""
    show("schedule", target.schedule(name), json, zone_of(utc))


@app.command()
@with_place
def put(
    *,
    name: Name,
    type: Annotated[str, option("TYPE", "type of its jobs", autocompletion=complete_type)],
    payload: Annotated[str, option("JSON", "payload of its jobs, as JSON", show_default="null")] = "null",
    queue: Annotated[
        str | None,
        option("QUEUE", "queue of its jobs", show_default="default", autocompletion=complete_queue),
    ] = None,
    every: Annotated[float | None, option("SECONDS", "seconds between two ticks", parser=seconds)] = None,
    cron: Annotated[str | None, option("EXPRESSION", "cron expression of the ticks: '0 3 * * *'")] = None,
    tz: Annotated[
        str | None, option("ZONE", "time zone of --cron: Europe/Berlin", show_default="UTC")
    ] = None,
    missed: Annotated[
        str,
        option(
            "one|none",
            "jobs to enqueue for ticks that were missed while nothing ran: one for all, or none",
            show_default=True,
            autocompletion=lambda: [*_MISSED],
        ),
    ] = "one",
    utc: Utc = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Create or change a schedule. If its timing stays the same, its next tick does too."""
    from ..gateway.timetable import ScheduleRequest
    from ..model.request import convert
    from .target import open_target

    if missed not in _MISSED:
        raise BadInputError("--missed", f"must be {' or '.join(_MISSED)}, got {missed!r}")
    given = {"queue": queue, "every": every, "cron": cron, "tz": tz}
    fields = {
        "type": type,
        "payload": typed_payload(payload, "--payload"),
        "missed": missed,
        **{name: value for name, value in given.items() if value is not None},
    }
    with open_target(flags, may_make=True) as target:
        made = target.put_schedule(name, convert(fields, ScheduleRequest))
    show("schedule", made, json, zone_of(utc))


@app.command()
@with_target
def run(*, name: Name, json: Json = False, target: Target) -> None:
    """Enqueue the job of a schedule now, in addition to its ticks."""
    from .render.tables import print_json

    receipt = target.run_schedule(name)
    if json:
        print_json({"id": receipt.id, "status": receipt.status})
    else:
        typer.echo(f"{receipt.id} {receipt.status}")


@app.command()
@with_target
def pause(*, name: Name, json: Json = False, target: Target) -> None:
    """Pause a schedule: no tick fires until it is resumed. It stays paused over restarts."""
    show("schedule_state", target.hold_schedule("pause", name), json)


@app.command()
@with_target
def resume(*, name: Name, utc: Utc = False, json: Json = False, target: Target) -> None:
    """Resume a paused schedule. Ticks during the pause do not count as missed."""
    show("schedule_state", target.hold_schedule("resume", name), json, zone_of(utc))


@app.command()
@with_target
def drop(*, name: Name, json: Json = False, target: Target) -> None:
    """Delete a schedule. Its jobs stay. If a program declares it, it comes back when the program starts."""
    from .render.tables import print_json

    target.drop_schedule(name)
    print_json({"name": name, "dropped": True}) if json else typer.echo(f"{name} dropped")
