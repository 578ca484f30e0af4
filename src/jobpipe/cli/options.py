"""Options: the flags of a command, made from the table of settings, so that there is one description of each.

They are read as text: the settings themselves say what is wrong with a value, wherever it came from.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Annotated, Any

import typer

from ..settings import Settings, flag_of

_TABLE = {each.name: each for each in fields(Settings)}


_URL = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="URL of a running service, such as http://localhost:8080, instead of a store",
        show_default=False,
    ),
]


# Why not the setting's own: its default, and the environment, are for callers over HTTP.
_QUEUE_SIZE = Annotated[
    str | None,
    typer.Option(
        "--queue-size",
        metavar="N",
        help="ready jobs a queue may have before it takes no more (default: no limit)",
        show_default=False,
    ),
]


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


def with_target(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags that say where the jobs are: a store, or a service and its token."""
    return with_settings(["store", "token"], {"url": _URL})(command)


def with_intake(command: Callable[..., None]) -> Callable[..., None]:
    """The same for one that puts jobs in: a store takes no more than its queues may hold."""
    return with_settings(["store", "token"], {"queue_size": _QUEUE_SIZE, "url": _URL})(command)


def with_settings(
    names: Iterable[str], others: Mapping[str, Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for each of these settings (and others, by their annotation).

    It gets those that were used as the mapping `flags`.
    """
    annotations = {name: Annotated[_kind(name), _option(name)] for name in names} | dict(others or {})
    chosen = list(annotations)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**kwargs: Any) -> None:
            flags = {name: value for name in chosen if (value := kwargs.pop(name)) is not None}
            command(**kwargs, flags=flags)

        own = inspect.signature(command, eval_str=True)
        parameters = [each for each in own.parameters.values() if each.name != "flags"]
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=annotations[name],
            )
            for name in chosen
        ]
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
    shown = (
        f" (default: {default:g})"
        if isinstance(default, float) and default < 10**6
        else f" (default: {default})"
    )
    flag = flag_of(name)
    return typer.Option(
        f"{flag}/--no{flag[1:]}" if _is_switch(name) else flag,
        metavar=None if _is_switch(name) else _metavar(name, setting.type),
        help=f"{setting.metadata['help']}{shown if default not in (None, (), False) else ''} [{setting.metadata['env']}]",
        show_default=False,
    )


def _metavar(name: str, type: object) -> str:
    """What stands for the value in the help."""
    return {"int": "N", "float": "SECONDS", "tuple[str, ...]": "A,B,…"}.get(
        str(type), name.split("_")[-1].upper()
    )
