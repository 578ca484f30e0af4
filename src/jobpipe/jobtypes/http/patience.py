"""Patience: how long a server wants to be left alone, by the header `Retry-After` of an answer that was no success."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime

LONGEST = 86_400.0
"""Seconds that are granted: a slip of the other side is not to put a job off for years."""
_SECONDS = re.compile(r"[0-9]{1,20}")
_SPREAD = 0.1
"""The part of the time by which it may become longer, so that not all come back at once; a second at least."""


def patience(
    told: str | None, now: float, uniform: Callable[[float, float], float] = random.uniform
) -> float | None:
    """Seconds until the next attempt, never less than told; None where no time ahead was told."""
    seconds = None if told is None else _seconds(told.strip(), now)
    # Why also what is over: a clock that is wrong must not turn off the back-off.
    if seconds is None or seconds <= 0:
        return None
    granted = min(seconds, LONGEST)
    return granted + uniform(0.0, max(granted * _SPREAD, 1.0))


def _seconds(told: str, now: float) -> float | None:
    """Of a number of seconds, or of a date as HTTP writes it."""
    if _SECONDS.fullmatch(told):
        return float(told)
    try:
        date = parsedate_to_datetime(told)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
    except (ValueError, OverflowError):
        return None
