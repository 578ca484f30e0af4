"""Checks of arguments: each raises the named error with the field and its value."""

from __future__ import annotations

from datetime import timedelta
from math import inf, isfinite

from .errors import BadFieldsError

Seconds = float | int | timedelta
"""A duration: seconds, or a timedelta."""


def duration(field: str, value: Seconds, *, positive: bool = False) -> float:
    """The duration in seconds; BadFieldsError unless it is finite and not negative."""
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, bool) or not isinstance(value, float | int):
        raise BadFieldsError(f"{field} must be seconds or a timedelta, got {value!r}")
    else:
        try:
            seconds = float(value)
        except OverflowError:
            seconds = inf
    if not isfinite(seconds) or seconds < 0 or (positive and seconds == 0):
        raise BadFieldsError(f"{field} must be a finite number {'>' if positive else '>='} 0, got {value!r}")
    return seconds


def is_awaitable(value: object) -> bool:
    """Can it be awaited? (inspect's answer, at a fifth of the time for the usual None.)"""
    return value is not None and hasattr(value, "__await__")


def refuse_awaitable(answer: object) -> None:
    """TypeError if it would have to be awaited, which nothing does in a thread: the work would be lost."""
    if is_awaitable(answer):
        close = getattr(answer, "close", None)
        if close is not None:
            close()  # or else it warns that it was never awaited
        raise TypeError(
            f"a call in the thread queue returned {answer!r}: coroutines need AsyncRateEnvelopeQueue"
        )
