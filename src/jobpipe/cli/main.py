"""The command `jobpipe`: its groups of commands, put together."""

from __future__ import annotations

import os
from functools import partial
from typing import Annotated

import typer

from . import enqueue, jobs, logs, schedules, serving
from . import manage as steering
from . import promote as moving
from . import store as tending
from .top import command as top

app = typer.Typer(
    name="jobpipe",
    help="Run, enqueue, inspect and manage background jobs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # Why: rich would double the time that `--help` takes
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"jobpipe {version('rate-envelope-queue')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


for _group in (serving, enqueue, jobs, logs, steering, top, tending, moving):
    for _command in _group.COMMANDS:
        app.command()(_command)
app.add_typer(schedules.app)


def main() -> None:
    """Run the command that the arguments name, or tell the shell what fits there."""
    run = partial(app, prog_name="jobpipe")
    asked = os.environ.get("_JOBPIPE_COMPLETE")
    if asked is not None:
        # Why: the help of an offer is broken at the width of the terminal, and fish takes every line for an offer.
        os.environ["COLUMNS"] = "10000"
    if asked == "complete_bash":
        from .completion.bash import complete  # Why here: only then it is needed

        complete(run)
    else:
        run()
