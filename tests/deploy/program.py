"""What the program really has, to hold files of deployments against: settings, commands, routes, metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from jobpipe import Jobpipe, Settings
from jobpipe.cli.main import app
from jobpipe.settings import variables_of
from jobpipe.web.app import make_app

ROOT = Path(__file__).parent.parent.parent
SETTINGS = {name: each for each in fields(Settings) for name in variables_of(each)}
MARGIN = 2.0
"""Seconds beyond the grace, after which the supervisor kills: see `jobpipe.process.supervisor`."""


def unknown(names: Mapping[str, object]) -> list[str]:
    """Those that are no settings."""
    return [name for name in names if name not in SETTINGS]


def load(environ: Mapping[str, str]) -> Settings:
    """The settings as a process with this environment has them; SettingsError names what is wrong."""
    return Settings.load(environ=environ, env_file=ROOT / "no.env")


def parse(arguments: Sequence[str]) -> str:
    """The name of the command that the arguments are for; raises typer's error for what it would not take."""
    name, *rest = arguments
    root: Any = typer.main.get_command(app)
    with root.commands[name].make_context(name, rest):
        return name


def probes() -> set[str]:
    """The paths that answer without a token."""
    pipe = Jobpipe("memory://")
    try:
        return {call.path for call in make_app(pipe).calls if call.is_probe}
    finally:
        pipe.close()
