"""`schedules`: inspect and manage schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ..errors import BadInputError
from .completion.candidates import complete_queue, complete_schedule, complete_type
from .guard import guarded
from .jobs import Json, Utc, zone_of
from .options import seconds, with_target
from .payload import typed_payload

if TYPE_CHECKING:
    from .target import Target

T = TypeVar("T")

app = typer.Typer(name="schedules", invoke_without_command=True)

_MISSED = ("one", "none")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="name of the schedule", autocompletion=complete_schedule)
]


@app.callback()
@guarded
@with_target
def schedules(*, ctx: typer.Context, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List schedules with their next and last runs, or manage one."""
    if ctx.invoked_subcommand is not None:
        if json or utc or flags:
            given = "--json" if json else "--utc" if utc else f"--{next(iter(flags))}"
            raise BadInputError(given, f"must come after {ctx.invoked_subcommand!r}")
        return
    from .render.tables import print_json, print_schedules

    found = _asked(flags, lambda target: target.schedules())
    print_json(found) if json else print_schedules(found, zone_of(utc))


@app.command()
@guarded
@with_target
def show(*, name: Name, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Show a schedule with its next five ticks."""
    from .render.tables import print_json, print_schedule

    found = _asked(flags, lambda target: target.schedule(name))
    print_json(found) if json else print_schedule(found, zone_of(utc))


@app.command()
@guarded
@with_target
def put(
    *,
    name: Name,
    type: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            help="type of its jobs",
            show_default=False,
            autocompletion=complete_type,
        ),
    ],
    payload: Annotated[
        str, typer.Option(metavar="JSON", help="payload of its jobs, as JSON", show_default="null")
    ] = "null",
    queue: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE",
            help="queue of its jobs",
            show_default="default",
            autocompletion=complete_queue,
        ),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="seconds between two ticks", parser=seconds, show_default=False),
    ] = None,
    cron: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRESSION", help="cron expression of the ticks: '0 3 * * *'", show_default=False
        ),
    ] = None,
    tz: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="time zone of --cron: Europe/Berlin", show_default="UTC"),
    ] = None,
    missed: Annotated[
        str,
        typer.Option(
            metavar="one|none",
            help="jobs to enqueue for ticks that were missed while nothing ran: one for all, or none",
            autocompletion=lambda: [*_MISSED],
        ),
    ] = "one",
    utc: Utc = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Create or change a schedule. If its timing stays the same, its next tick does too."""
    from .render.tables import print_json, print_schedule

    if missed not in _MISSED:
        raise BadInputError("--missed", f"must be {' or '.join(_MISSED)}, got {missed!r}")
    given = {"queue": queue, "every": every, "cron": cron, "tz": tz}
    fields = {
        "type": type,
        "payload": typed_payload(payload, "--payload"),
        "missed": missed,
        **{name: value for name, value in given.items() if value is not None},
    }
    made = _asked(flags, lambda target: target.put_schedule(name, fields), may_make=True)
    print_json(made) if json else print_schedule(made, zone_of(utc))


@app.command()
@guarded
@with_target
def run(*, name: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Enqueue the job of a schedule now, in addition to its ticks."""
    from .render.tables import print_json

    receipt = _asked(flags, lambda target: target.run_schedule(name))
    if json:
        print_json({"id": receipt.id, "status": receipt.status})
    else:
        typer.echo(f"{receipt.id} {receipt.status}")


@app.command()
@guarded
@with_target
def pause(*, name: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Pause a schedule: no tick fires until it is resumed. It stays paused over restarts."""
    _hold("pause", name, json, flags)


@app.command()
@guarded
@with_target
def resume(*, name: Name, utc: Utc = False, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Resume a paused schedule. Ticks during the pause do not count as missed."""
    _hold("resume", name, json, flags, utc)


@app.command()
@guarded
@with_target
def drop(*, name: Name, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Delete a schedule. Its jobs stay. If a program declares it, it comes back when the program starts."""
    from .render.tables import print_json

    _asked(flags, lambda target: target.drop_schedule(name))
    print_json({"name": name, "dropped": True}) if json else typer.echo(f"{name} dropped")


def _hold(verb: str, name: str, as_json: bool, flags: Mapping[str, Any], utc: bool = False) -> None:
    from .render.tables import hold_in_words, print_json

    found = _asked(flags, lambda target: target.hold_schedule(verb, name))
    print_json(found) if as_json else typer.echo(hold_in_words(found, zone_of(utc)))


def _asked(flags: Mapping[str, Any], ask: Callable[[Target], T], *, may_make: bool = False) -> T:
    """What the target answers."""
    from .target import open_target

    with open_target(flags, may_make=may_make) as target:
        return ask(target)
