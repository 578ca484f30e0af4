"""`top`: the command, and how it finds the service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ...errors import UnreachableError
from ...settings import Settings
from ..guard import fail
from ..jobs import Json
from ..options import option, with_settings

_PORT = 8080
"""Where it looks if JOBPIPE_PORT is 0, which means any."""
_PATIENCE = 5.0
"""Seconds for an answer."""
_URL = Annotated[
    str | None, option("URL", "URL of the running service (default: port JOBPIPE_PORT on this machine)")
]


@with_settings(["token"], {"url": _URL})
def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="print the current state and exit")] = False,
    json: Json = False,
    flags: Mapping[str, Any],
) -> None:
    """Watch a running service: its queues, jobs and workers, live.

    Keys pause and resume queues, cancel and retry jobs, and filter; ? lists them. Without a terminal, it prints the
    current state and exits.
    """
    from ..target import ServiceTarget
    from .run import print_snapshot, print_snapshot_json, show
    from .screen import is_possible
    from .watcher import look

    url = flags.get("url") or f"http://127.0.0.1:{Settings.load().port or _PORT}"
    with ServiceTarget(url, flags.get("token"), _PATIENCE) as target:
        try:
            if json:
                print_snapshot_json(look(target, url))
                return
            if once or not is_possible():
                print_snapshot(look(target, url), target.past())
                return
            code = show(target, url)
        except UnreachableError as error:
            if error.may_have_arrived or "url" in flags:
                raise
            raise fail(
                f"no service answers at {url}: start one with jobpipe serve, or pass another URL with --url"
            ) from None
    if code:
        raise typer.Exit(code)


COMMANDS = (top,)
