"""Spelling: what is wrong, with its name as it was typed: `--run-at` where the service says `run_at`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

from typer.models import ArgumentInfo, OptionInfo

from ...settings import Settings, flag_of

if TYPE_CHECKING:
    from ...errors import BadInputError, SettingsError

_OTHER = re.compile(r"^(?P<word> (?:and|or|is for|requires) )(?P<field>\w+)\b")
"""The second field of a problem that is about two."""


def as_typed(error: BadInputError, command: Callable[..., Any]) -> str:
    """The error, in the words of who called the command."""
    names = dict(_names(command))
    problem = str(error).removeprefix(error.field)
    problem = _OTHER.sub(lambda other: other["word"] + names.get(other["field"], other["field"]), problem)
    whole = error.field.partition("[")[0]  # `tags[1]` was typed as `--tag`
    return names.get(error.field, names.get(whole, error.field)) + problem


def as_given(error: SettingsError, arguments: Mapping[str, Any]) -> str:
    """The error, with the flag in place of the variable, where the value came by the flag."""
    for each in fields(Settings):
        if error.name == each.metadata["env"] and arguments.get(each.name) is not None:
            return flag_of(each.name) + str(error).removeprefix(error.name)
    return str(error)


def _names(command: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    """The parameters of the command, and how they are spelt on the line."""
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        for each in get_args(parameter.annotation):
            if isinstance(each, OptionInfo):
                # Why the default: that is where an annotation has its first flag, before typer has read it.
                given = (each.default, *(each.param_decls or ()))
                flags = [flag for flag in given if isinstance(flag, str) and flag.startswith("--")]
                yield parameter.name, flags[0] if flags else f"--{parameter.name.replace('_', '-')}"
            elif isinstance(each, ArgumentInfo):
                shown = each.metavar or parameter.name.upper()
                yield parameter.name, shown
                yield shown.lower(), shown
