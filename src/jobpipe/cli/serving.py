"""`serve` and `worker`: a supervisor, and the processes that it keeps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import failpoints as marks
from ..errors import BadInputError, SettingsError
from ..settings import Settings, unknown_settings
from .options import whole_number, with_settings

logger = logging.getLogger("jobpipe")

_MOST_PROCESSES = 1_000

if TYPE_CHECKING:
    from ..process.link import SupervisorLink
    from ..process.supervisor import Terms

App = Annotated[
    str | None,
    typer.Argument(
        metavar="APP",
        help="module:attribute of your Jobpipe; without it, the built-in types run",
        show_default=False,
    ),
]
Processes = Annotated[int, typer.Option(metavar="N", help="number of processes, 1-1000", parser=whole_number)]
Insecure = Annotated[bool, typer.Option("--insecure", help="let other machines connect without a token")]
Reload = Annotated[
    bool,
    typer.Option("--reload", help="restart when a Python file in this folder changes; for development"),
]

_ALL = [each.name for each in fields(Settings)]
_WEB_ONLY = {
    "host",
    "port",
    "token",
    "read_token",
    "token_file",
    "allowed_hosts",
    "scheduled_size",
    "max_names",
}


@with_settings(_ALL)
def serve(
    *,
    app: App = None,
    processes: Processes = 1,
    insecure: Insecure = False,
    reload: Reload = False,
    flags: Mapping[str, Any],
) -> None:
    """Run the API and the workers."""
    _supervise(app, processes, flags, is_web=True, is_insecure=insecure, is_reloading=reload)


@with_settings([name for name in _ALL if name not in _WEB_ONLY])
def worker(*, app: App = None, processes: Processes = 1, flags: Mapping[str, Any]) -> None:
    """Run workers without the API."""
    _supervise(app, processes, flags, is_web=False)


COMMANDS = (serve, worker)


def _supervise(
    app: str | None,
    processes: int,
    flags: Mapping[str, Any],
    *,
    is_web: bool,
    is_insecure: bool = False,
    is_reloading: bool = False,
) -> None:
    from ..process import supervisor
    from ..process.changes import Changes
    from ..process.logs import setup_logging

    if not 1 <= processes <= _MOST_PROCESSES:
        raise BadInputError(
            "processes", f"must be a whole number from 1 to {_MOST_PROCESSES}, got {processes}"
        )
    settings = Settings.load(flags)  # what is wrong without the program is told before it is imported
    setup_logging(settings.log, level=settings.log_level)
    if marks.ARE_ON:
        logger.warning("%s is set: processes may kill themselves, which is for tests only", marks.VARIABLE)
    for name in unknown_settings():
        logger.warning("%s is not a known setting and is ignored", name)

    def child(link: SupervisorLink) -> int:
        from .child import run_child  # only there: it brings asyncio, and the user's program

        return run_child(link, app=app, flags=flags, is_web=is_web)

    def prepare(told: Mapping[str, Any]) -> Terms:
        setup_logging(told["log"], level=told["log_level"])
        if processes > 1 and not told["is_shared"]:
            raise SettingsError("--processes", "must be 1 with memory://, which processes cannot share")
        if not is_web:
            return supervisor.Terms(grace=told["grace"], announcement=f"{many}working")
        from ..process.listening import is_reachable, listen, url_of

        is_open = told["has_token"] or is_insecure
        sockets = listen(told["host"], told["port"], beyond_loopback=is_open)
        if not told["has_token"] and any(map(is_reachable, sockets)):
            logger.warning(
                "--insecure: everyone who can reach this address can read, enqueue and cancel jobs; "
                "set a token (JOBPIPE_TOKEN) to prevent that"
            )
        if told["has_short_token"]:
            logger.warning(
                "a token has fewer than 16 characters and can be guessed; create a better one: "
                "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        announcement = f"{many}listening on {url_of(sockets[0])}"
        return supervisor.Terms(sockets=tuple(sockets), grace=told["grace"], announcement=announcement)

    many = f"{processes} processes; " if processes > 1 else ""
    watch = Changes(Path.cwd()).next if is_reloading else None
    raise typer.Exit(supervisor.run(child, processes=processes, prepare=prepare, watch=watch))
