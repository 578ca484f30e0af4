"""`manage.py jobpipe`: the command line of jobpipe, for the tasks of the project.

It becomes that command line: the supervisor of workers imports nothing of the project, its processes do.
"""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER
from itertools import takewhile
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser, handle_default_options

from .....errors import SettingsError
from ...app import SPEC, VARIABLE, chosen_backend

_APP = {"worker": [SPEC], "serve": [SPEC], "enqueue": ["--app", SPEC]}
"""The commands that load the project, and how they are told so."""


class Command(BaseCommand):  # type: ignore[misc] # Why: Django is not typed
    """The command."""

    help = "Run the tasks of the project and look after them: worker, serve, jobs, top, migrate and all else of jobpipe."
    requires_system_checks: list[str] = []  # noqa: RUF012 # Why: as Django's own class has it

    def add_arguments(self, parser: CommandParser) -> None:
        """Its own comes before the command of jobpipe; what comes after is that command's."""
        parser.add_argument(
            "--backend", metavar="ALIAS", help="backend in TASKS, where several are of jobpipe"
        )
        parser.add_argument(
            "arguments", nargs=REMAINDER, metavar="COMMAND …", help="such as: worker --queues mail"
        )

    def handle(self, *_: Any, **options: Any) -> None:
        """Become the command line of jobpipe."""
        given = _without_defaults(options["arguments"])
        name, *rest = given or ["--help"]
        command = [name, *_APP.get(name, []), *rest]
        sys.stdout.flush()
        sys.stderr.flush()
        python = [sys.executable, *(f"-W{each}" for each in sys.warnoptions), "-m", "jobpipe"]
        env = _environment(name, options["backend"])
        os.execve(sys.executable, [*python, *command], env)  # noqa: S606 # Why: our own command line


def _without_defaults(arguments: list[str]) -> list[str]:
    """Without Django's own options, which may stand anywhere, and have been heeded."""
    parser = CommandParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--pythonpath")
    found, rest = parser.parse_known_args(arguments)
    handle_default_options(found)
    return list(rest)


def _environment(name: str, alias: str | None) -> dict[str, str]:
    if "DJANGO_SETTINGS_MODULE" not in os.environ:
        raise CommandError("DJANGO_SETTINGS_MODULE is not set: the workers load the project by it")
    try:
        backend = chosen_backend(alias)
    except (ImproperlyConfigured, SettingsError) as error:
        raise CommandError(str(error)) from None
    # Why: the folder of manage.py, and what --pythonpath names, are before the standard library, which begins with its zip.
    own = takewhile(lambda path: not path.endswith(".zip"), sys.path)
    paths = dict.fromkeys([*filter(None, own), *filter(None, [os.environ.get("PYTHONPATH")])])
    found = {**os.environ, VARIABLE: backend.alias, "PYTHONPATH": os.pathsep.join(paths)}
    if not settings.is_overridden("TIME_ZONE"):
        found.pop("TZ", None)  # Why: Django has set it to its own default, which the project has not chosen
    return found if name in _APP else {**found, "JOBPIPE_STORE": backend.pipe.settings.store}
