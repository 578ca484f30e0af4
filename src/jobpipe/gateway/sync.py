"""Twins of coroutine methods, for any thread: `get_sync = sync(get)` is one line of a class's table of them.

A twin runs its coroutine in the calling thread, to the end, with or without an event loop there. That works because
everything such a coroutine awaits asks `is_sync()`, and then does its work at once: calls of the store, `Bell.wait`
and `in_thread`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


class _Thread(threading.local):
    is_sync = False


_thread = _Thread()
"""Why by thread, and no ContextVar: what a twin has other threads do later must not take itself for a twin."""


def is_sync() -> bool:
    """Is this a twin's coroutine, which must not wait on an event loop?"""
    return _thread.is_sync


def sync(method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[S, P], T]:
    """The twin of a coroutine method."""

    @wraps(method)
    def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run_now(method(self, *args, **kwargs))

    twin.__name__ = f"{method.__name__}_sync"
    twin.__qualname__ = f"{method.__qualname__}_sync"
    twin.__doc__ = f"`{method.__name__}` from any thread, with or without an event loop."
    return twin


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it to its end in this thread."""
    outer, _thread.is_sync = _thread.is_sync, True
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        _thread.is_sync = outer
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} awaits what only an event loop can do")


call_here: ContextVar[Callable[..., Any] | None] = ContextVar("jobpipe.call_here", default=None)
"""What calls functions in place of threads, for a test that has all of it run in its own thread."""


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Call what may take long: not on the event loop."""
    if is_sync():
        return function(*args)
    call: Callable[..., T] | None = call_here.get()
    return await asyncio.to_thread(function, *args) if call is None else call(function, *args)


class Bell:
    """Rung from any thread; waited for by a coroutine."""

    def __init__(self) -> None:
        self._loop = None if is_sync() else asyncio.get_running_loop()
        self._event = asyncio.Event()
        self._thread_event = threading.Event()

    def ring(self) -> None:
        """Let the next wait end at once."""
        if self._loop is None:
            self._thread_event.set()
        else:
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> None:
        """Return when it is rung, or after that time."""
        if self._loop is None:
            self._thread_event.wait(seconds)
            self._thread_event.clear()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()
