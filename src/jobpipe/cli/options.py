"""Options: the flags of a command, in groups that it gets as one value; those of settings are made from their table.

They are read as text: the settings themselves say what is wrong with a value, wherever it came from.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import wraps
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..settings import Settings, flag_of
from .guard import fail, guarded

if TYPE_CHECKING:
    from .target import Target

Command = Callable[..., None]
Use = Callable[[Mapping[str, Any]], AbstractContextManager[Any]]

_TABLE = {each.name: each for each in fields(Settings)}


def option(metavar: str, help: str, *flags: str, **more: Any) -> Any:
    """An option with a value; its default is shown only as `show_default` has it."""
    return typer.Option(*flags, **{"metavar": metavar, "help": help, "show_default": False, **more})


def seconds(text: str) -> float:
    """A number of seconds, as an option has it."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number of seconds, such as 90 or 0.5, got {text!r}") from None


def whole_number(text: str) -> int:
    """A whole number, as an option has it."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"must be a whole number, such as 5, got {text!r}") from None


def typed_payload(text: str, field: str = "PAYLOAD") -> Any:
    """The value; what is no JSON is told with a hint how to quote it."""
    from ..model.json import BadJsonError, parse

    try:
        return parse(text.encode("utf-8", "surrogateescape"))
    except BadJsonError as error:
        from shlex import quote

        hint = (
            quote(f'"{text}"')
            if len(text) <= 60 and '"' not in text and "\\" not in text
            else '\'{"key": "value"}\''
        )
        problem = str(error).replace("the body", field)
        raise fail(f"{problem}; quote it for JSON and for the shell, such as {hint}", 2) from None


def with_options(
    group: str, options: Mapping[str, Any], use: Use = nullcontext
) -> Callable[[Command], Command]:
    """Give a command an option for each of these annotations, in place of its parameter `group`.

    That gets those that were given, as a mapping, or what `use` makes of them.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**kwargs: Any) -> None:
            given = {name: value for name in options if (value := kwargs.pop(name)) is not None}
            with use(given) as value:
                command(**kwargs, **{group: value})

        # Why a stand-in: the Target is loaded by the commands that need one, and here it is no option.
        own = inspect.signature(command, locals={"Target": object}, eval_str=True)
        made = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in options.items()
        ]
        parameters: list[Parameter] = []
        for each in own.parameters.values():
            parameters += made if each.name == group else [each]
        # Why both: typer looks at the signature and at the annotations.
        run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _is_switch(name: str) -> bool:
    return isinstance(_TABLE[name].default, bool)


def _kind(name: str) -> Any:
    return bool | None if _is_switch(name) else str | None


def _option(name: str) -> Any:
    setting = _TABLE[name]
    default = setting.default
    shown = f"{default:g}" if isinstance(default, float) and default < 10**6 else default
    told = "" if default in (None, (), False) else f" (default: {shown})"
    flag = flag_of(name)
    return typer.Option(
        f"{flag}/--no{flag[1:]}" if _is_switch(name) else flag,
        metavar=None if _is_switch(name) else _metavar(name, setting.type),
        help=f"{setting.metadata['help']}{told} [{setting.metadata['env']}]",
        show_default=False,
    )


def _metavar(name: str, type: object) -> str:
    """What stands for the value in the help."""
    return {"int": "N", "float": "SECONDS", "tuple[str, ...]": "A,B,…"}.get(
        str(type), name.split("_")[-1].upper()
    )


def with_settings(
    names: Iterable[str],
    others: Mapping[str, Any] | None = None,
    group: str = "flags",
    use: Use = nullcontext,
) -> Callable[[Command], Command]:
    """Guard a command, and give it flags of these settings (and others, by their annotation)."""
    options = {name: Annotated[_kind(name), _option(name)] for name in names} | dict(others or {})
    return lambda command: guarded(with_options(group, options, use)(command))


def _opened(flags: Mapping[str, Any]) -> AbstractContextManager[Target]:
    from .target import open_target  # Why here: it takes longer to load than the help of all commands

    return open_target(flags)


_PLACE = ("store", "token")
_URL = Annotated[
    str | None,
    option("URL", "URL of a running service, such as http://localhost:8080, instead of a store"),
]
# Why not the setting's own: its default, and the environment, are for callers over HTTP.
_QUEUE_SIZE = Annotated[
    str | None, option("N", "ready jobs a queue may have before it takes no more (default: no limit)")
]

with_place = with_settings(_PLACE, {"url": _URL})
"""Give a command the `flags` that say where the jobs are: a store, or a service and its token."""
with_target = with_settings(_PLACE, {"url": _URL}, "target", _opened)
"""Give a command the `target` that they name, open until it returns."""
with_intake = with_settings(_PLACE, {"queue_size": _QUEUE_SIZE, "url": _URL})
"""Give a command that puts jobs in such `flags`: a store takes no more than its queues may hold."""
