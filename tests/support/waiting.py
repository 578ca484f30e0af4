"""How tests wait: for an event or a condition, with one limit for all of them, and never for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LIMIT = 60.0
"""Seconds until a test gives up on what should come at once: a busy machine must fail none."""
_PAUSE = 0.01


def eventually(condition: Callable[[], T | None], what: object = "", limit: float = LIMIT) -> T:
    """What the condition gives as soon as it is true; `what` tells of a failure, and may be called for it."""
    until = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < until, f"still not after {limit:g} s: {what() if callable(what) else what}"
        time.sleep(_PAUSE)
    return found
