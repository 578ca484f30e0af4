"""How tests wait: for an event or a condition, with one limit for all of them, and never for a fixed time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

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


async def until(condition: Callable[[], T | None]) -> T:
    """`eventually` for a coroutine: the event loop goes on meanwhile."""
    async with asyncio.timeout(LIMIT):
        while not (found := condition()):
            await asyncio.sleep(_PAUSE)
    return found


def wait_for(event: threading.Event) -> Coroutine[Any, Any, bool]:
    """For a coroutine: an event that a thread sets."""
    return asyncio.to_thread(event.wait, LIMIT)


def run(scenario: Coroutine[Any, Any, T]) -> T:
    """Run it on an event loop of its own."""
    return asyncio.run(asyncio.wait_for(scenario, LIMIT))
