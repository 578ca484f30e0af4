"""The options of a queue: each is checked, and what is wrong is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..context import Context
from ..core.run import HookBudget
from ..errors import BadFieldsError
from ..limiters import Limiter

T = TypeVar("T")
R = TypeVar("R")


def check_options(given: Mapping[str, Any]) -> None:
    """Check those that are used as they are given; ValueError naming the first that is wrong."""
    for option, (is_right, expected) in _CHECKS.items():
        expect(option, given[option], is_right(given[option]), expected)


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str) and value != "", "a string that is not empty"),
    "workers": (lambda value: type(value) is int and value >= 1, "an integer >= 1"),
    "stop_mode": (lambda value: value in ("drain", "stop"), "'drain' or 'stop'"),
    "waiting": (lambda value: isinstance(value, bool), "True or False"),
    "capacity": (lambda value: type(value) is int and value >= 0, "an integer >= 0"),
    "limiter": (lambda value: value is None or _is_made(value, Limiter), "a limiter"),
    "on_periodic_error": (lambda value: value in ("interval", "backoff"), "'interval' or 'backoff'"),
    "hook_budget": (lambda value: isinstance(value, HookBudget), "a HookBudget"),
    "parent": (lambda value: value is None or isinstance(value, Context), "a Context"),
    "metrics": (lambda value: isinstance(value, bool), "True or False"),
    "clock": (
        lambda value: _is_made(value, object) and hasattr(value, "now") and hasattr(value, "wait"),
        "a Clock",
    ),
    "replace_stuck": (lambda value: isinstance(value, bool), "True or False"),
}


def _is_made(value: object, kind: type) -> bool:
    """Is it one of these? Not the class itself, which has all the methods, too."""
    return isinstance(value, kind) and not isinstance(value, type)


def expect(option: str, value: object, is_right: bool, expected: str) -> None:
    if not is_right:
        raise BadFieldsError(f"{option} must be {expected}, got {value!r}")


def by_type(option: str, given: Mapping[str, T] | None, check: Callable[[str, T], R]) -> dict[str, R]:
    """A mapping from types, with each value checked."""
    expect(option, given, given is None or isinstance(given, Mapping), "a mapping from types")
    for name in given or {}:
        expect(option, name, isinstance(name, str) and name != "", "a mapping from types that are not empty")
    return {name: check(f"{option}[{name!r}]", value) for name, value in (given or {}).items()}


def permits(option: str, value: int) -> int:
    expect(option, value, type(value) is int and value >= 1, "an integer >= 1")
    return value
