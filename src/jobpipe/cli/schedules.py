"""`schedules`: look at what puts jobs in by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .guard import guarded
from .jobs import Json
from .options import with_target


@guarded
@with_target
def schedules(*, json: Json = False, flags: Mapping[str, Any]) -> None:
    """List schedules, with their next and last runs."""
    from .tables import print_json, print_schedules
    from .target import open_target

    with open_target(flags) as target:
        found = target.schedules()
    print_json(found) if json else print_schedules(found)


COMMANDS = (schedules,)
