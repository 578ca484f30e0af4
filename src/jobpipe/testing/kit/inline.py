"""For tests without an event loop: one that runs in the thread of the caller, and plain functions that run there, too.

So handlers run in the thread of the test, where its database connection is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from ...gateway.sync import call_here

P = ParamSpec("P")
T = TypeVar("T")


class Inline(ThreadPoolExecutor):
    """Calls functions at once, in the thread that asks for it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call it; what runs in no event loop otherwise sees none here."""
        future: Future[T] = Future()
        try:
            with _no_loop():
                result = fn(*args, **kwargs)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return future

    def call(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it; what it returns, or raises."""
        return self.submit(fn, *args, **kwargs).result()


class InlineLoop:
    """An event loop that runs in the thread of each caller, one at a time, from the first use until it is closed."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._lock = threading.Lock()

    def run(self, make: Callable[[Inline], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine to its end."""
        with self._lock, _no_loop():
            if self._runner is None:
                self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
            inline, context = Inline(1), copy_context()
            context.run(call_here.set, inline.call)
            return self._runner.run(make(inline), context=context)

    def close(self) -> None:
        """End the loop."""
        with self._lock, _no_loop():
            if self._runner is not None:
                self._runner.close()
                self._runner = None


@contextmanager
def _no_loop() -> Iterator[None]:
    """Let it seem that no event loop runs in this thread."""
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
