"""The reference of the command line, made from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import typer

from jobpipe import Settings
from jobpipe.cli.main import app

_SETTINGS = {each.name for each in fields(Settings)}
_WHERE = "url"


def commands_reference() -> str:
    """A section for each command."""
    return "\n".join(
        line for name, command in _commands("jobpipe", _root()) for line in _section(name, command)
    )


def command_names() -> list[str]:
    """All of them, with the words that lead to them."""
    return [name for name, _ in _commands("jobpipe", _root())]


def _root() -> Any:
    # Why Any: the classes of commands are typer's own affair, and have moved before.
    return typer.main.get_command(app)


def _commands(name: str, group: Any) -> Iterator[tuple[str, Any]]:
    for each in group.commands.values():
        yield f"{name} {each.name}", each
        if hasattr(each, "commands"):
            yield from _commands(f"{name} {each.name}", each)


def _section(name: str, command: Any) -> Iterator[str]:
    parameters = [each for each in command.params if each.name != "help"]
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    own = [each for each in parameters if each.name not in _SETTINGS | {_WHERE}]
    words = [_usage(each) for each in arguments]
    yield from (f"### {name}", "", " ".join(str(command.help).split()), "")
    if words:
        yield from (f"`{' '.join([name, *words])}`", "")
    if own:
        yield from ("| | default | meaning |", "|---|---|---|", *map(_row, own), "")
    settings = [f"`{each.opts[0]}`" for each in parameters if each.name in _SETTINGS]
    if any(each.name == _WHERE for each in parameters):
        yield from (
            f"Also {', '.join([*settings, '`--url`'])}: [where the jobs are](#where-the-jobs-are).",
            "",
        )
    elif settings:
        yield from (f"[Settings](settings.md) as flags: {', '.join(settings)}.", "")


def _usage(argument: Any) -> str:
    shown = argument.metavar if argument.required else f"[{argument.metavar}]"
    return f"{shown}..." if argument.nargs == -1 else shown


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        shown = parameter.metavar
    else:
        shown = ", ".join(parameter.opts) + ("" if parameter.is_flag else f" {parameter.metavar}")
    default = "required" if parameter.required else _default(parameter)
    meaning = " ".join(str(parameter.help).split()).replace("|", r"\|")
    return f"| `{shown.replace('|', chr(92) + '|')}` | {default} | {meaning} |"


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return f"`{parameter.show_default}`"
    has_one = parameter.show_default and parameter.default not in (None, False)
    return f"`{parameter.default}`" if has_one else ""
