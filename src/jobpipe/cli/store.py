"""`migrate` and `check`: manage the store itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import typer

from .jobs import Json
from .options import with_place, with_settings


@with_settings(["store"])
def migrate(*, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Bring the store's schema up to date. Every other command does this too; this one does nothing else."""
    from ..settings import Settings
    from ..stores import open_store
    from .render.tables import print_json

    with closing(open_store(Settings.load(flags).store)) as store:
        steps = store.migrate()
        if json:
            print_json({"store": store.url, "steps": steps})
        else:
            typer.echo("\n".join(f"{store.url}: {step}" for step in steps) or f"{store.url}: up to date")


@with_place
def check(*, json: Json = False, flags: Mapping[str, Any]) -> None:
    """Check how safe jobs are in the store, or if a service is ready.

    Exit code 1 if the store cannot be used, or the service is not ready.
    """
    from .render.tables import print_json
    from .target import open_target

    with open_target(flags) as target:
        url, remarks = target.check()
    if json:
        print_json({"store" if flags.get("url") is None else "url": url, "remarks": remarks})
    else:
        typer.echo("\n".join(f"{url}: {remark}" for remark in remarks))


COMMANDS = (migrate, check)
